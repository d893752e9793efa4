// Files of a sandbox: a tree, an editor, and what is different from the last snapshot.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { API, ask, at, get, post, Refused, remove, type Entry } from "./api";
import { Code } from "./code";
import { diff, hunks, type Line } from "./diff";
import { useLive } from "./hooks";
import { bytes, date, mode } from "./text";
import { Act, attempt, Button, complain, Confirm, Dialog, Empty, Icon, Loading, Problem, say, Segments, useReadOnly } from "./ui";

interface Listing {
  path: string;
  entries: Entry[];
  more: number;
}

interface Changes {
  since: { id: string; name: string | null; created: number } | null;
  changes: { name: string | null; shown: string; kind: string }[];
  more: number;
}

const EDITED_MAX = 1 << 20;
const HOME = "/home/user";

function join(directory: string, name: string): string {
  return directory === "/" ? `/${name}` : `${directory}/${name}`;
}

function parent(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")));
}

export function Files({ id }: { id: string }) {
  const [view, setView] = useState<"tree" | "changes">("tree");
  const [directory, setDirectory] = useState(HOME);
  const [chosen, setChosen] = useState<string>();
  const [version, setVersion] = useState(0);
  const [naming, setNaming] = useState<"file" | "directory">();
  const input = useRef<HTMLInputElement>(null);
  const reads = useReadOnly();
  const changed = () => setVersion((before) => before + 1);
  const upload = async (files: FileList | null) => {
    for (const file of reads ? [] : (files ?? [])) {
      const path = join(directory, file.name);
      await attempt(() => ask("POST", at(`/sandboxes/${id}/file`, { path }), file), `${file.name} is there`);
    }
    changed();
  };
  return (
    <div class={`files${chosen ? " has-file" : ""}`}>
      <div class="files-side card">
        <div class="files-bar">
          <Segments
            label="What is shown"
            value={view}
            options={[
              ["tree", "Files"],
              ["changes", "Changes"],
            ]}
            onChange={setView}
          />
          {view === "tree" && (
            <span class="buttons">
              <Act small kind="ghost" icon="file" label={`New file in ${directory}`} onClick={() => setNaming("file")} />
              <Act small kind="ghost" icon="folder" label={`New directory in ${directory}`} onClick={() => setNaming("directory")} />
              <Act small kind="ghost" icon="upload" label={`Upload to ${directory}`} onClick={() => input.current?.click()} />
              <Button small kind="ghost" icon="refresh" label="Read again" onClick={changed} />
            </span>
          )}
          <input
            ref={input}
            type="file"
            multiple
            hidden
            aria-label="Files to upload"
            onChange={(event) => void upload(event.currentTarget.files)}
          />
        </div>
        {view === "tree" ? (
          <Tree id={id} version={version} chosen={chosen} directory={directory} onFile={setChosen} onDirectory={setDirectory} onDrop={upload} />
        ) : (
          <ChangeList id={id} chosen={chosen} onFile={setChosen} />
        )}
      </div>
      <div class="files-main card">
        {chosen ? (
          view === "changes" ? (
            <Difference key={`diff ${chosen}`} id={id} path={chosen} onClose={() => setChosen(undefined)} />
          ) : (
            <FileEditor
              key={`${chosen} ${version}`}
              id={id}
              path={chosen}
              onChanged={changed}
              onRenamed={(path) => (setChosen(path), changed())}
              onClose={() => setChosen(undefined)}
            />
          )
        ) : (
          <Empty icon="file" title={view === "tree" ? "Choose a file" : "Choose a change"}>
            {view === "tree" && !reads && <p>Or drop files onto the tree: they go to {directory}.</p>}
          </Empty>
        )}
      </div>
      {naming && (
        <NewEntry
          id={id}
          kind={naming}
          directory={directory}
          onClose={() => setNaming(undefined)}
          onMade={(path) => {
            changed();
            if (naming === "file") setChosen(path);
          }}
        />
      )}
    </div>
  );
}

interface NewEntryProps {
  id: string;
  kind: "file" | "directory";
  directory: string;
  onMade: (path: string) => void;
  onClose: () => void;
}

function NewEntry({ id, kind, directory, onMade, onClose }: NewEntryProps) {
  const [name, set] = useState("");
  const make = async () => {
    const path = join(directory, name);
    const work = () =>
      kind === "file" ? ask("POST", at(`/sandboxes/${id}/file`, { path }), new Blob([])) : post(at(`/sandboxes/${id}/directory`, { path }));
    if (!(await attempt(work))) return;
    onMade(path);
    onClose();
  };
  return (
    <Dialog
      title={kind === "file" ? "New file" : "New directory"}
      onClose={onClose}
      onSubmit={() => void make()}
      actions={
        <Button kind="primary" type="submit" disabled={!name}>
          Make
        </Button>
      }
    >
      <label>
        Name, in {directory}
        <input value={name} onInput={(event) => set(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}

interface TreeProps {
  id: string;
  version: number;
  chosen: string | undefined;
  directory: string;
  onFile: (path: string) => void;
  onDirectory: (path: string) => void;
  onDrop: (files: FileList | null) => Promise<void>;
}

function Tree({ id, version, chosen, directory, onFile, onDirectory, onDrop }: TreeProps) {
  const [open, setOpen] = useState(new Set(["/", "/home", HOME]));
  const [over, setOver] = useState(false);
  const toggle = (path: string) => {
    const next = new Set(open);
    if (!next.delete(path)) next.add(path);
    setOpen(next);
    onDirectory(path);
  };
  const move = (event: KeyboardEvent) => {
    const items = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=treeitem] > .item")];
    const place = items.indexOf(document.activeElement as HTMLElement);
    const item = items[place];
    if (!item) return;
    const expanded = item.parentElement!.getAttribute("aria-expanded");
    if (event.key === "ArrowDown") items[place + 1]?.focus();
    else if (event.key === "ArrowUp") items[place - 1]?.focus();
    else if (event.key === "ArrowRight" && expanded === "false") item.click();
    else if (event.key === "ArrowLeft" && expanded === "true") item.click();
    else return;
    event.preventDefault();
  };
  return (
    <div
      class={`tree-box${over ? " over" : ""}`}
      onDragOver={(event) => (event.preventDefault(), setOver(true))}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void onDrop(event.dataTransfer?.files ?? null);
      }}
    >
      <ul class="tree" role="tree" aria-label="Files" onKeyDown={move}>
        <Branch id={id} path="/" name="/" level={1} open={open} version={version} chosen={chosen} directory={directory} onToggle={toggle} onFile={onFile} />
      </ul>
    </div>
  );
}

interface BranchProps {
  id: string;
  path: string;
  name: string;
  level: number;
  open: Set<string>;
  version: number;
  chosen: string | undefined;
  directory: string;
  onToggle: (path: string) => void;
  onFile: (path: string) => void;
}

function Branch(props: BranchProps) {
  const { id, path, name, level, open, version, chosen, directory, onToggle, onFile } = props;
  const isOpen = open.has(path);
  return (
    <li role="treeitem" aria-expanded={isOpen} aria-selected={directory === path} aria-level={level}>
      <button type="button" class="item" tabIndex={path === "/" ? 0 : -1} onClick={() => onToggle(path)}>
        <span class={`chevron${isOpen ? " open" : ""}`}>
          <Icon name="chevron" size={13} />
        </span>
        <Icon name="folder" size={16} />
        <span>{name}</span>
      </button>
      {isOpen && <Children id={id} path={path} level={level + 1} open={open} version={version} chosen={chosen} directory={directory} onToggle={onToggle} onFile={onFile} />}
    </li>
  );
}

function Children(props: Omit<BranchProps, "name">) {
  const { id, path, level, version, chosen, onFile } = props;
  const live = useLive(`${path} ${version}`, (signal) => get<Listing>(at(`/sandboxes/${id}/entries`, { path }), signal));
  const before = useRef<Listing | undefined>(undefined);
  if (live.value) before.current = live.value;
  const listing = live.value ?? before.current;
  if (live.error) return <p class="tree-note">{live.error.message}</p>;
  if (!listing) return null;
  return (
    <ul role="group">
      {listing.entries.map((entry) => {
        const full = entry.name === null ? undefined : join(path, entry.name);
        if (entry.kind === "directory" && full) {
          return <Branch key={full} {...props} path={full} name={entry.shown} />;
        }
        return (
          <li key={entry.shown} role="treeitem" aria-level={level} aria-selected={full !== undefined && full === chosen}>
            <button
              type="button"
              class="item"
             
              tabIndex={-1}
              disabled={!full || entry.kind === "other"}
              title={`${mode(entry.kind, entry.mode)}  ${bytes(entry.size)}  ${date(entry.mtime)}`}
              onClick={() => full && onFile(full)}
            >
              <span class="chevron" />
              <Icon name={entry.kind === "symlink" ? "link" : "file"} size={16} />
              <span>{entry.shown}</span>
              <small>{bytes(entry.size)}</small>
            </button>
          </li>
        );
      })}
      {listing.more > 0 && <p class="tree-note">and {listing.more} more</p>}
      {listing.entries.length === 0 && <p class="tree-note">empty</p>}
    </ul>
  );
}

async function readText(url: string): Promise<string> {
  const answer = await ask("GET", url);
  if (Number(answer.headers.get("content-length") ?? 0) > EDITED_MAX) throw new Refused(413, "This file is too large to be edited here: download it.");
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  try {
    return text.decode(await answer.arrayBuffer());
  } catch {
    throw new Refused(415, "This file is no text: download it.");
  }
}

interface FileEditorProps {
  id: string;
  path: string;
  onChanged: () => void;
  onRenamed: (path: string) => void;
  onClose: () => void;
}

function FileEditor({ id, path, onChanged, onRenamed, onClose }: FileEditorProps) {
  const url = at(`/sandboxes/${id}/file`, { path });
  const live = useLive(path, () => readText(url));
  const [text, setText] = useState<string>();
  const [saved, setSaved] = useState<string>();
  const [asked, setAsked] = useState<"remove" | "rename">();
  const reads = useReadOnly();
  const now = text ?? saved ?? live.value;
  const unsaved = now !== (saved ?? live.value);
  const save = async () => {
    if (now === undefined) return;
    if (await attempt(() => ask("POST", url, new Blob([now])), "Saved")) setSaved(now);
  };
  useEffect(() => {
    if (!unsaved) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [unsaved]);
  return (
    <>
      <FileBar path={path} mark={unsaved ? "not saved" : ""} onClose={onClose}>
        {live.value !== undefined && (
          <Act small kind={unsaved ? "primary" : "plain"} icon="save" disabled={!unsaved} onClick={() => void save()}>
            Save
          </Act>
        )}
        <a class="button plain small" href={API + url} download>
          <Icon name="download" size={15} />
          Download
        </a>
        <Act small icon="pencil" label="Rename" onClick={() => setAsked("rename")} />
        <Act small icon="trash" label="Delete" onClick={() => setAsked("remove")} />
      </FileBar>
      {live.error ? (
        <Empty icon="file" title={live.error.message} />
      ) : live.value === undefined ? (
        <Loading />
      ) : (
        <Code text={live.value} language={path} label={`Contents of ${path}`} numbered readOnly={reads} onChange={setText} onSave={() => void save()} />
      )}
      {asked === "remove" && (
        <Confirm
          title={`Delete ${path}?`}
          text="It can't be taken back, unless a snapshot has it."
          action="Delete"
          onConfirm={async () => {
            await remove(url);
            onClose();
            onChanged();
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
      {asked === "rename" && (
        <Rename
          path={path}
          onClose={() => setAsked(undefined)}
          onRename={async (to) => {
            if (await attempt(() => post(`/sandboxes/${id}/rename`, { path, to }))) onRenamed(to);
          }}
        />
      )}
    </>
  );
}

function Rename({ path, onRename, onClose }: { path: string; onRename: (to: string) => Promise<void>; onClose: () => void }) {
  const [to, set] = useState(path);
  return (
    <Dialog
      title="Rename"
      onClose={onClose}
      onSubmit={() => void onRename(to).then(onClose)}
      actions={
        <Button kind="primary" type="submit" disabled={!to.startsWith("/") || to === path}>
          Rename
        </Button>
      }
    >
      <label>
        New path
        <input value={to} onInput={(event) => set(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}

function FileBar({ path, mark, onClose, children }: { path: string; mark: string; onClose: () => void; children?: ComponentChildren }) {
  return (
    <div class="file-bar">
      <Button small kind="ghost" icon="x" label="Close the file" onClick={onClose} />
      <h2 class="path">
        <span class="muted">{parent(path) === "/" ? "/" : `${parent(path)}/`}</span>
        {path.slice(path.lastIndexOf("/") + 1)}
      </h2>
      {mark && <span class="chip warn">{mark}</span>}
      <span class="spacer" />
      {children}
    </div>
  );
}

const SIGNS: Record<string, string> = { added: "A", modified: "M", deleted: "D", attributes: "m" };

function ChangeList({ id, chosen, onFile }: { id: string; chosen: string | undefined; onFile: (path: string) => void }) {
  const live = useLive(`changes ${id}`, (signal) => get<Changes>(`/sandboxes/${id}/changes`, signal));
  const found = live.value;
  if (live.error) return <Problem error={live.error} />;
  if (!found) return <Loading />;
  if (!found.since) return <p class="tree-note">There is no snapshot to compare with yet: take one first.</p>;
  return (
    <>
      <p class="tree-note">
        Since {found.since.name ?? "the snapshot"} of {date(found.since.created)}
        <Button small kind="ghost" icon="refresh" label="Compare again" onClick={() => void live.refresh()} />
      </p>
      <ul class="changes">
        {found.changes.map((change) => (
          <li key={change.shown}>
            <button
              type="button"
              class="item"
              aria-pressed={change.name === chosen}
              disabled={change.name === null}
              onClick={() => change.name && onFile(change.name)}
            >
              <span class={`sign ${change.kind}`} title={change.kind}>
                {SIGNS[change.kind]}
              </span>
              <span>{change.shown}</span>
            </button>
          </li>
        ))}
      </ul>
      {found.changes.length === 0 && <p class="tree-note">Nothing is different.</p>}
      {found.more > 0 && <p class="tree-note">and {found.more} more</p>}
    </>
  );
}

/** The text of a file, "" if there is none. */
async function textOrNone(url: string): Promise<string> {
  try {
    return await readText(url);
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return "";
    throw error;
  }
}

function Difference({ id, path, onClose }: { id: string; path: string; onClose: () => void }) {
  const live = useLive(path, async () => {
    const [before, after] = await Promise.all(
      ["before", "file"].map((side) => textOrNone(at(`/sandboxes/${id}/${side}`, { path }))),
    );
    return { before: before!, lines: diff(before!, after!) };
  });
  const restore = async () => {
    const done = await attempt(() => ask("POST", at(`/sandboxes/${id}/file`, { path }), new Blob([live.value!.before])));
    if (!done) return complain(`${path} is as it was before`);
    say("As in the snapshot again");
    await live.refresh();
  };
  const lines = live.value?.lines ?? [];
  const counts = (kind: Line["kind"]) => lines.filter((line) => line.kind === kind).length;
  return (
    <>
      <FileBar path={path} mark="" onClose={onClose}>
        <span class="counts">
          <span class="good">+{counts("added")}</span> <span class="bad">−{counts("removed")}</span>
        </span>
        {live.value?.before && (
          <Act small icon="refresh" onClick={() => void restore()}>
            Restore
          </Act>
        )}
      </FileBar>
      {live.error ? (
        <Empty icon="diff" title={live.error.message} />
      ) : !live.value ? (
        <Loading />
      ) : (
        <div class="diff" role="region" aria-label={`Changes of ${path}`} tabIndex={0}>
          {hunks(lines).map((hunk, place) => (
            <table key={place}>
              <tbody>
                {hunk.map((line) => (
                  <tr key={`${line.before} ${line.after}`} class={line.kind}>
                    <td class="number">{line.before}</td>
                    <td class="number">{line.after}</td>
                    <td class="sign">{line.kind === "added" ? "+" : line.kind === "removed" ? "−" : ""}</td>
                    <td>{line.text}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          ))}
          {lines.length > 0 && counts("same") === lines.length && <p class="tree-note">The text is the same.</p>}
        </div>
      )}
    </>
  );
}
