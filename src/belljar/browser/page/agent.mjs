// An agent in the page: a model behind any endpoint that speaks OpenAI's chat completions, with the sandbox as its tool.
// The key is sent to that endpoint and nowhere else; no code of the sandbox can see it.
const TURNS = 24;
const OUTPUT_MAX = 12_000; // characters of one command's output that the model sees
const TIMEOUT = 120;
const INSTRUCTIONS = `You work in a Unix sandbox that runs inside the user's web page. Its files are in /workspace. Use the tool
to run commands (bash, coreutils, grep, sed, awk, jq, git, sqlite3, python3, and more). There is no network. Check your work. Be brief.`;
const TOOL = {
  type: "function",
  function: {
    name: "bash",
    description: "Run a command in the sandbox's bash. Gives its output and exit code. Files stay; shell variables do not.",
    parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"], additionalProperties: false },
  },
};

export class Agent {
  #sandbox;
  #settings;
  #messages = [{ role: "system", content: INSTRUCTIONS }];

  /**
   * @param sandbox  () => Sandbox
   * @param settings {url, model, key}: url is what comes before /chat/completions
   */
  constructor(sandbox, settings) {
    this.#sandbox = sandbox;
    this.#settings = settings;
  }

  /** Work on a task. `tell(kind, text)` hears "answer", "command" and "output". Errors of the endpoint are raised. */
  async work(task, tell, signal) {
    const kept = this.#messages.length;
    this.#messages.push({ role: "user", content: task });
    try {
      for (let turn = 0; turn < TURNS; turn++) {
        const message = await this.#ask(signal);
        this.#messages.push(message);
        if (message.content) tell("answer", message.content);
        if (!message.tool_calls?.length) return;
        for (const call of message.tool_calls) this.#messages.push({ role: "tool", tool_call_id: call.id, content: await this.#use(call, tell, signal) });
      }
      tell("answer", `(stopped after ${TURNS} turns)`);
    } catch (error) {
      this.#messages.length = kept; // a conversation with half a turn in it would be refused from now on
      throw error;
    }
  }

  async #ask(signal) {
    const { url, model, key } = this.#settings;
    const response = await fetch(`${url.replace(/\/+$/, "")}/chat/completions`, {
      method: "POST",
      signal,
      credentials: "omit",
      referrerPolicy: "no-referrer",
      headers: { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) },
      body: JSON.stringify({ model, messages: this.#messages, tools: [TOOL] }),
    });
    if (!response.ok) throw new Error(`the endpoint answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
    const message = (await response.json()).choices?.[0]?.message;
    if (typeof message !== "object" || message === null) throw new Error("the endpoint's answer has no message in it");
    const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
    return { role: "assistant", content: typeof message.content === "string" ? message.content : null, ...(calls.length ? { tool_calls: calls } : {}) };
  }

  async #use(call, tell, signal) {
    let command;
    try {
      if (call.function?.name !== "bash") return `there is no tool ${call.function?.name}`;
      ({ command } = JSON.parse(call.function.arguments));
      if (typeof command !== "string") throw new TypeError("command must be a string");
    } catch (error) {
      return `wrong arguments: ${error.message}`;
    }
    tell("command", command);
    const { stdout, exitCode, timedOut } = await this.#sandbox().exec(command, { mergeStderr: true, timeout: TIMEOUT, signal });
    const output = stdout.length > OUTPUT_MAX ? `${stdout.slice(0, OUTPUT_MAX / 2)}\n[...]\n${stdout.slice(-OUTPUT_MAX / 2)}` : stdout;
    const status = timedOut ? `(ended after ${TIMEOUT} seconds)` : exitCode ? `(exit code ${exitCode})` : "";
    const said = [output.trimEnd(), status].filter(Boolean).join("\n");
    tell("output", said);
    return said || "(no output)";
  }
}
