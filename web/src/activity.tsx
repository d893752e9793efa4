// What a sandbox uses, against its limits, and its processes.
import { useState } from "preact/hooks";
import { get, post, type Process, type Sample, type Session } from "./api";
import { Chart, type Point } from "./chart";
import { useLive } from "./hooks";
import { bytes, count } from "./text";
import { Act, attempt, Columns, Loading, Problem } from "./ui";

const STATES: Record<string, string> = { R: "running", S: "sleeping", D: "waiting", T: "stopped", Z: "ended", t: "traced", I: "idle" };

/** How fast a counter grew between measurements. */
function rates(samples: Sample[], value: (sample: Sample) => number): Point[] {
  return samples.slice(1).map((sample, place) => {
    const before = samples[place]!;
    const time = sample.at - before.at;
    return { at: sample.at, value: time > 0 ? Math.max(0, value(sample) - value(before)) / time : 0 };
  });
}

export function Activity({ id, session }: { id: string; session: Session }) {
  const live = useLive(`samples ${id}`, (signal) => get<Sample[]>(`/sandboxes/${id}/samples`, signal), 1500);
  const samples = live.value;
  if (!samples) return live.error ? <Problem error={live.error} /> : <Loading />;
  const values = (value: (sample: Sample) => number): Point[] => samples.map((sample) => ({ at: sample.at, value: value(sample) }));
  const percent = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} %`;
  const perSecond = (value: number) => `${bytes(value)}/s`;
  const { memory, disk } = session.limits;
  return (
    <div class="activity">
      <Problem error={live.error} />
      <div class="charts">
        <Chart title="Processor" points={rates(samples, (sample) => sample.cpu * 100)} format={percent} note="of one core" />
        <Chart title="Memory" points={values((sample) => sample.memory)} format={bytes} limit={memory} note={`of ${bytes(memory)}`} />
        <Chart title="Files" points={values((sample) => sample.bytes)} format={bytes} limit={disk} note={`of ${bytes(disk)}, ${count(samples.at(-1)?.files ?? 0)} files`} />
        <Chart title="Processes" points={values((sample) => sample.processes)} format={String} />
        <Chart title="Network, in" points={rates(samples, (sample) => sample.network_bytes_in)} format={perSecond} note={`${bytes(samples.at(-1)?.network_bytes_in ?? 0)} in all`} />
        <Chart title="Network, out" points={rates(samples, (sample) => sample.network_bytes_out)} format={perSecond} note={`${bytes(samples.at(-1)?.network_bytes_out ?? 0)} in all`} />
      </div>
      <Processes id={id} />
    </div>
  );
}

function Processes({ id }: { id: string }) {
  const live = useLive(`processes ${id}`, (signal) => get<Process[]>(`/sandboxes/${id}/processes`, signal), 2000);
  const [ended, setEnded] = useState(0);
  const end = async (pid: number) => {
    await attempt(() => post(`/sandboxes/${id}/processes/${pid}/signal`, { signal: ended === pid ? "KILL" : "TERM" }), `Process ${pid} was told to end`);
    setEnded(pid);
    await live.refresh();
  };
  return (
    <section class="card table-card">
      <header class="card-head">
        <h2>Processes</h2>
        <span class="muted">{live.value?.length ?? 0}</span>
      </header>
      <Problem error={live.error} />
      <table class="rows">
        <Columns names={["Command", "Pid", "Parent", "State", "Processor", "Memory"]} actions />
        <tbody>
          {(live.value ?? []).map((each) => (
            <tr key={each.pid}>
              <td class="main-cell command">
                <code>{each.command}</code>
              </td>
              <td data-label="Pid" class="number">
                {each.pid}
              </td>
              <td data-label="Parent" class="number">
                {each.parent}
              </td>
              <td data-label="State">{STATES[each.state] ?? each.state}</td>
              <td data-label="Processor" class="number">
                {each.cpu.toFixed(2)} s
              </td>
              <td data-label="Memory" class="number">
                {each.memory > 0 ? bytes(each.memory) : "–"}
              </td>
              <td class="actions">
                {each.pid !== 1 && (
                  <Act small icon="stop" label={`${ended === each.pid ? "Kill" : "End"} process ${each.pid}`} onClick={() => void end(each.pid)} />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
