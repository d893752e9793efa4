// Snapshots as a tree: what came of what, and a new branch from any of them.
import { useState } from "preact/hooks";
import { get, post, remove, type Sandbox, type Snapshot, type SnapshotTree } from "./api";
import { go, useLive, useNow } from "./hooks";
import { ago, date, title } from "./text";
import { Act, attempt, Confirm, Empty, Icon, Loading, Problem, State } from "./ui";

interface Node {
  id: string;
  image?: string;
  snapshot?: Snapshot;
  sandbox?: Sandbox;
  children: Node[];
}

/** Trees whose roots are images. A branch whose snapshot was removed hangs on a root of that name. */
function grow({ snapshots, sandboxes }: SnapshotTree): Node[] {
  const nodes = new Map<string, Node>(snapshots.map((snapshot) => [snapshot.id, { id: snapshot.id, snapshot, children: [] }]));
  const roots = new Map<string, Node>();
  const below = (name: string): Node => {
    const known = nodes.get(name) ?? roots.get(name);
    if (known) return known;
    const root: Node = { id: `image ${name}`, image: name, children: [] };
    roots.set(name, root);
    return root;
  };
  for (const snapshot of snapshots) below(snapshot.parent).children.push(nodes.get(snapshot.id)!);
  for (const sandbox of sandboxes) below(sandbox.parent).children.push({ id: sandbox.id, sandbox, children: [] });
  return [...roots.values()];
}

/** The part of a tree that leads to a sandbox or comes of it. */
function prune(nodes: Node[], id: string): Node[] {
  return nodes.flatMap((node) => {
    const children = prune(node.children, id);
    const mine = node.snapshot?.sandbox === id || node.sandbox?.id === id || children.length > 0;
    return mine ? [{ ...node, children }] : [];
  });
}

function useTree() {
  return useLive("tree", (signal) => get<SnapshotTree>("/snapshots", signal), 4000);
}

export function SnapshotTreePage() {
  const live = useTree();
  return (
    <div class="page">
      <header class="page-head">
        <h1>Snapshots</h1>
      </header>
      <Problem error={live.error} />
      {live.value ? <Forest tree={live.value} roots={grow(live.value)} refresh={live.refresh} /> : <Loading />}
    </div>
  );
}

export function SandboxSnapshots({ sandbox }: { sandbox: Sandbox }) {
  const live = useTree();
  if (!live.value) return live.error ? <Problem error={live.error} /> : <Loading />;
  const roots = prune(grow(live.value), sandbox.id);
  return (
    <div class="snapshots">
      <Forest tree={live.value} roots={roots} refresh={live.refresh} here={sandbox.id} />
    </div>
  );
}

interface ForestProps {
  tree: SnapshotTree;
  roots: Node[];
  refresh: () => Promise<void>;
  here?: string;
}

function Forest({ tree, roots, refresh, here }: ForestProps) {
  const [removing, setRemoving] = useState<Snapshot>();
  const branch = (from: string, name: string | null) =>
    attempt(async () => {
      const metadata = name ? { name: `from ${name}` } : {};
      const made = await post<{ sandboxID: string }>("/sandboxes", { templateID: from, timeout: 3600, metadata });
      go("sandboxes", made.sandboxID, "terminal");
    }, "A new branch runs");
  if (!tree.stored) {
    return (
      <Empty icon="camera" title="This server keeps no snapshots">
        <p>
          Start it with <code>--store PATH</code>.
        </p>
      </Empty>
    );
  }
  if (roots.length === 0) return <Empty icon="camera" title="No snapshot and no sandbox yet" />;
  return (
    <div class="card forest">
      <ul class="lineage">
        {roots.map((node) => (
          <Twig key={node.id} node={node} here={here} onBranch={(from, name) => void branch(from, name)} onRemove={setRemoving} />
        ))}
      </ul>
      {removing && (
        <Confirm
          title={`Remove ${removing.name ?? "this snapshot"}?`}
          text="Sandboxes and snapshots that came of it stay."
          action="Remove"
          onConfirm={async () => {
            await remove(`/snapshots/${encodeURIComponent(removing.id)}`);
            await refresh();
          }}
          onClose={() => setRemoving(undefined)}
        />
      )}
    </div>
  );
}

interface TwigProps {
  node: Node;
  here: string | undefined;
  onBranch: (from: string, name: string | null) => void;
  onRemove: (snapshot: Snapshot) => void;
}

function Twig({ node, here, onBranch, onRemove }: TwigProps) {
  const now = useNow();
  const { snapshot, sandbox, image } = node;
  const gone = image !== undefined && image.length === 25;
  return (
    <li>
      <div class={`node ${image ? "image" : snapshot ? "kept" : "live"}${sandbox?.id === here && here ? " here" : ""}`}>
        <span class="bead">
          <Icon name={image ? "layers" : snapshot ? "camera" : "box"} size={15} />
        </span>
        {image !== undefined && <strong>{gone ? "a snapshot that was removed" : image}</strong>}
        {snapshot && (
          <>
            <strong>{snapshot.name ?? `snapshot ${snapshot.id.slice(1, 7)}`}</strong>
            <small class="muted" title={date(snapshot.created)}>
              {ago(snapshot.created, now)}
            </small>
          </>
        )}
        {sandbox && (
          <>
            <a href={`#/sandboxes/${sandbox.id}/terminal`}>{title(sandbox)}</a>
            <State state={sandbox.state} />
          </>
        )}
        <span class="spacer" />
        {!sandbox && !gone && (
          <Act small icon="fork" onClick={() => onBranch(snapshot?.id ?? image!, snapshot?.name ?? null)}>
            Branch from here
          </Act>
        )}
        {snapshot && <Act small kind="ghost" icon="trash" label={`Remove ${snapshot.name ?? snapshot.id}`} onClick={() => onRemove(snapshot)} />}
      </div>
      {node.children.length > 0 && (
        <ul>
          {node.children.map((child) => (
            <Twig key={child.id} node={child} here={here} onBranch={onBranch} onRemove={onRemove} />
          ))}
        </ul>
      )}
    </li>
  );
}
