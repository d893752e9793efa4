// What a sandbox asked the network for, what was decided, and what would have to be said to allow it.
import { useState } from "preact/hooks";
import { ask, get, type Network, type NetworkEvent } from "./api";
import { useLive } from "./hooks";
import { clock } from "./text";
import { Act, attempt, Button, CodeLine, Columns, Dialog, Empty, Loading, Problem, Segments } from "./ui";

type Filter = "all" | "denied" | "accepted";

function subject(event: NetworkEvent): string {
  if (event.action === "dns") return `${event.name} (${event.type})`;
  if (event.target) return event.target;
  const host = event.hostname ? `${event.hostname} (${event.ip})` : event.ip;
  return host ? `${host}${event.port === undefined ? "" : `:${event.port}`}` : "";
}

const ACTIONS: Record<string, string> = { dns: "name", connect: "connection", request: "request", outcome: "result" };

export function NetworkLog({ id }: { id: string }) {
  const live = useLive(`network ${id}`, (signal) => get<Network>(`/sandboxes/${id}/network`, signal), 2000);
  const [filter, setFilter] = useState<Filter>("all");
  const [asked, setAsked] = useState<string>();
  const found = live.value;
  if (!found) return live.error ? <Problem error={live.error} /> : <Loading />;
  // The result of something denied says no more than its verdict.
  const events = found.events.filter((event) => event.verdict || (event.action === "outcome" && event.result !== "denied")).toReversed();
  const state = (event: NetworkEvent) => event.verdict ?? event.result ?? "";
  const shown = events.filter((event) => filter === "all" || state(event) === filter);
  const denied = events.filter((event) => event.verdict === "denied").length;
  return (
    <div class="network">
      <Problem error={live.error} />
      <div class="card policy">
        <div>
          <h2>Policy</h2>
          <Policy network={found} />
        </div>
        <Segments
          label="Verdict"
          value={filter}
          options={[
            ["all", `All ${events.length}`],
            ["denied", `Denied ${denied}`],
            ["accepted", "Accepted"],
          ]}
          onChange={setFilter}
        />
      </div>
      {shown.length === 0 ? (
        <Empty icon="shield" title={events.length === 0 ? "Nothing was asked for yet" : "Nothing of that kind"}>
          {events.length === 0 && <p>Try <code>curl https://example.com</code> in the terminal.</p>}
        </Empty>
      ) : (
        <div class="card table-card">
          <table class="rows">
            <Columns names={["What", "Verdict", "Kind", "Why", "Time"]} actions />
            <tbody>
              {shown.map((event, place) => (
                <tr key={`${event.time} ${events.length - place}`}>
                  <td class="main-cell command">
                    <code>{subject(event)}</code>
                  </td>
                  <td>
                    <span class={`chip ${state(event) === "denied" ? "bad" : state(event) === "accepted" ? "good" : ""}`}>{state(event)}</span>
                  </td>
                  <td data-label="Kind">{ACTIONS[event.action] ?? event.action}</td>
                  <td data-label="Why" class="why">
                    {event.reason ?? ""}
                  </td>
                  <td data-label="Time" class="number">
                    {clock(event.time)}
                  </td>
                  <td class="actions">
                    {event.allow && (
                      <Button small onClick={() => setAsked(event.allow!)}>
                        Allow…
                      </Button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {asked && <Allow id={id} pattern={asked} network={found} onClose={() => setAsked(undefined)} refresh={live.refresh} />}
    </div>
  );
}

function Policy({ network }: { network: Network }) {
  if (network.granted.length === 0) return <p class="muted">This server grants sandboxes no network.</p>;
  const own = network.allowOut ?? (network.internet === false ? [] : network.granted);
  return (
    <p class="chips">
      {own.length === 0 ? <span class="chip">nothing</span> : own.map((each) => <code key={each} class="chip good">{each}</code>)}
      {(network.denyOut ?? []).map((each) => <code key={each} class="chip bad">not {each}</code>)}
    </p>
  );
}

interface AllowProps {
  id: string;
  pattern: string;
  network: Network;
  onClose: () => void;
  refresh: () => Promise<void>;
}

function Allow({ id, pattern, network, onClose, refresh }: AllowProps) {
  const grantable = network.granted.includes("*") || network.granted.includes(pattern);
  const allow = async () => {
    const allowOut = [...(network.allowOut ?? []), pattern];
    const done = await attempt(() => ask("PUT", `/sandboxes/${id}/network`, { allowOut }), `${pattern} is allowed now`);
    await refresh();
    if (done) onClose();
  };
  return (
    <Dialog
      title={`To allow ${pattern}`}
      onClose={onClose}
      actions={
        grantable && (
          <Act kind="primary" onClick={() => void allow()}>
            Allow it in this sandbox now
          </Act>
        )
      }
    >
      {!grantable && <p>The server does not grant it to any sandbox. Whoever runs it can, by</p>}
      {!grantable && <CodeLine text={`belljar serve --allow-host '${pattern}'`} label="Copy" />}
      <p>A client of the E2B protocol asks for it with</p>
      <CodeLine text={`Sandbox.create(network={"allow_out": ["${pattern}"]})`} label="Copy" />
      <p>A policy in your own program is</p>
      <CodeLine text={`Sandbox(network=Network.allow("${pattern}"))`} label="Copy" />
    </Dialog>
  );
}
