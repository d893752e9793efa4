// Images that sandboxes can be made from.
import { get, post, type Image } from "./api";
import { go, useLive } from "./hooks";
import { bytes } from "./text";
import { Act, attempt, Copy, Icon, Loading, Problem } from "./ui";

export function Images() {
  const live = useLive("images", (signal) => get<Image[]>("/images", signal), 10000);
  const create = (name: string) =>
    attempt(async () => {
      const made = await post<{ sandboxID: string }>("/sandboxes", { templateID: name, timeout: 3600 });
      go("sandboxes", made.sandboxID, "terminal");
    });
  return (
    <div class="page">
      <header class="page-head">
        <h1>Images</h1>
      </header>
      <Problem error={live.error} />
      {!live.value && <Loading />}
      <div class="cards">
        {(live.value ?? []).map((image) => (
          <article key={image.kind + image.name} class="card image-card">
            <header>
              <span class="bead">
                <Icon name="layers" size={18} />
              </span>
              <h2>{image.name}</h2>
              <span class="muted">{image.digest ? bytes(image.size) : image.kind}</span>
            </header>
            <dl>
              <dt>User</dt>
              <dd>{image.user}</dd>
              <dt>Directory</dt>
              <dd>
                <code>{image.cwd}</code>
              </dd>
              {image.command.length > 0 && (
                <>
                  <dt>Command</dt>
                  <dd>
                    <code>{image.command.join(" ")}</code>
                  </dd>
                </>
              )}
              {image.digest && (
                <>
                  <dt>Digest</dt>
                  <dd>
                    <Copy text={image.digest} label="Copy the digest">
                      <code>{image.digest.slice(0, 19)}…</code>
                    </Copy>
                  </dd>
                </>
              )}
            </dl>
            {image.history.length > 0 && (
              <details>
                <summary>{image.history.length} steps</summary>
                <ol>
                  {image.history.map((step, place) => (
                    <li key={place}>
                      <code>{step}</code>
                    </li>
                  ))}
                </ol>
              </details>
            )}
            {(image.state ?? "ready") !== "ready" ? (
              <span class="chip warn">{image.state}</span>
            ) : (
              <Act icon="plus" onClick={() => void create(image.name)}>
                Make a sandbox
              </Act>
            )}
          </article>
        ))}
      </div>
    </div>
  );
}
