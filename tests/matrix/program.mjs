// Runs under LangGraph.js: leaves threads behind, and later goes on with them. The JavaScript twin
// of program.py: the same verbs, states and answers.
//
//     node program.mjs leave DATABASE_URL
//     node program.mjs go_on DATABASE_URL    (the threads that were left, as JSON on stdin)
//     node program.mjs write DATABASE_URL GRAPH STATE THREAD_ID    (one thread, to its death)
//     node program.mjs overtake DATABASE_URL GRAPH - THREAD_ID

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeSync } from "node:fs";
import { fileURLToPath } from "node:url";

process.env.LANGSMITH_TRACING = process.env.LANGCHAIN_TRACING_V2 = "false";

const { BaseChatModel } = await import("@langchain/core/language_models/chat_models");
const { AIMessage, HumanMessage } = await import("@langchain/core/messages");
const { tool } = await import("@langchain/core/tools");
const { Command, END, MessagesAnnotation, START, StateGraph, interrupt } = await import(
  "@langchain/langgraph"
);
const { ToolNode, createReactAgent, toolsCondition } = await import(
  "@langchain/langgraph/prebuilt"
);
const { PostgresSaver } = await import("@langchain/langgraph-checkpoint-postgres");
const { createAgent } = await import("langchain");
const { z } = await import("zod");

const KILLED = "SIGKILL";
const CALLER = "00000000-0000-0000-0000-000000000000";

// The tools that the model calls, in parallel, on what it is told.
const CALLS = {
  "Call fast.": ["fast"],
  "Call slow.": ["slow"],
  "Call fast, slow and fast.": ["fast", "slow", "fast"],
  "Ask me first.": ["approve"],
};

// How a thread is left, and what it is told last; all but first_call have had a turn before.
const STATES = {
  first_call: "Call slow.",
  one_call: "Call slow.",
  siblings: "Call fast, slow and fast.",
  behind_the_tools: "Call fast, slow and fast.",
  overtaken: "Call fast, slow and fast.",
  waiting: "Ask me first.",
  healthy: "Call fast.",
};
const KILLED_STATES = ["first_call", "one_call", "siblings", "behind_the_tools", "overtaken"];

class Refused extends Error {}

// Refuse a list in which a call is not followed at once by exactly one result.
function check(messages) {
  let open = [];
  for (const message of messages) {
    if (message.getType() === "tool") {
      if (!open.includes(message.tool_call_id) || !message.content) {
        throw new Refused(`a result that answers no open call: ${message.tool_call_id}`);
      }
      open = open.filter((id) => id !== message.tool_call_id);
      continue;
    }
    if (open.length) throw new Refused(`calls without a result: ${open}`);
    if (message.getType() === "ai") open = (message.tool_calls ?? []).map((call) => call.id);
  }
  if (open.length) throw new Refused(`calls without a result: ${open}`);
}

// Says what follows from the messages alone, and refuses lists as the providers do.
class ScriptedModel extends BaseChatModel {
  constructor() {
    super({});
  }

  _llmType() {
    return "scripted";
  }

  bindTools() {
    return this;
  }

  async _generate(messages) {
    check(messages);
    const last = messages.at(-1);
    let message;
    if (last.getType() === "ai") throw new Refused("nothing to answer");
    if (last.getType() === "tool") {
      message = new AIMessage("The tools are done.");
    } else if (CALLS[last.text]) {
      const turn = messages.filter((each) => each.getType() === "human").length;
      const tool_calls = CALLS[last.text].map((name, index) => ({
        name,
        args: {},
        id: `call_${turn}_${index + 1}`,
        type: "tool_call",
      }));
      message = new AIMessage({ content: "", tool_calls });
    } else {
      message = new AIMessage(`You said: ${last.text}`);
    }
    return { generations: [{ text: message.text, message }] };
  }
}

// LangGraph's own saver, which knows what has reached the database.
class WitnessSaver extends PostgresSaver {
  parents = new Map();
  settled = new Map();
  waiting = [];
  last = null;

  async put(config, checkpoint, metadata, versions) {
    const parent = config.configurable.checkpoint_id ?? "";
    if (this.last?.[0] === parent) await this.dieBehind(...this.last);
    const saved = await super.put(config, checkpoint, metadata, versions);
    this.parents.set(checkpoint.id, parent);
    this.look();
    return saved;
  }

  async putWrites(config, writes, taskId) {
    await super.putWrites(config, writes, taskId);
    if (taskId === CALLER) return;
    const id = config.configurable.checkpoint_id;
    if (!this.settled.has(id)) this.settled.set(id, new Set());
    this.settled.get(id).add(taskId);
    this.look();
  }

  tasks(id) {
    return this.settled.get(id)?.size ?? 0;
  }

  look() {
    for (const [id, tasks] of this.waiting) {
      if (this.tasks(this.parents.get(id)) && this.tasks(id) >= tasks) {
        process.kill(process.pid, KILLED);
      }
    }
  }

  // End the process once that checkpoint and the writes of so many of its tasks are there.
  dieBehind(id, tasks) {
    this.waiting.push([id, tasks]);
    this.look();
    return new Promise(() => {});
  }
}

// `fast`, which answers; `slow`, in which the process dies; `approve`, which asks a person.
function toolsOf(die) {
  const schema = z.object({});
  return [
    tool(async (_, config) => `fast ${config.toolCall.id}`, {
      name: "fast",
      description: "Answer at once.",
      schema,
    }),
    tool((_, config) => die(config.configurable.checkpoint_map[""]), {
      name: "slow",
      description: "Take long.",
      schema,
    }),
    tool(async () => `approved: ${interrupt("May I?")}`, {
      name: "approve",
      description: "Ask a person.",
      schema,
    }),
  ];
}

function toolNodeGraph(llm, tools, checkpointer) {
  return new StateGraph(MessagesAnnotation)
    .addNode("chat", async (state) => ({ messages: [await llm.invoke(state.messages)] }))
    .addNode("tools", new ToolNode(tools))
    .addEdge(START, "chat")
    .addConditionalEdges("chat", toolsCondition, ["tools", END])
    .addEdge("tools", "chat")
    .compile({ checkpointer });
}

const react = (version) => (llm, tools, checkpointSaver) =>
  createReactAgent({ llm, tools, checkpointSaver, version });

const GRAPHS = {
  ToolNode: toolNodeGraph,
  "createReactAgent v1": react("v1"),
  "createReactAgent v2": react("v2"),
  createAgent: (model, tools, checkpointer) => createAgent({ model, tools, checkpointer }),
};
// The graphs that run each call as a task of its own, so that finished siblings are on disk.
const TASK_A_CALL = ["createReactAgent v2", "createAgent"];

const thread = (id) => ({ configurable: { thread_id: id } });
const said = (text) => ({ messages: [new HumanMessage(text)] });
const connect = (url) => WitnessSaver.fromConnString(url);
const build = (url, name, die) => {
  // fromConnString makes the base class, so the witness is made over the same pool.
  const saver = new WitnessSaver(connect(url).pool);
  return [GRAPHS[name](new ScriptedModel(), toolsOf(die), saver), saver];
};

async function write(url, name, state, id) {
  const siblings = TASK_A_CALL.includes(name);
  const [graph, saver] = build(url, name, async (checkpoint) => {
    if (state === "behind_the_tools") {
      // In `put` of the next checkpoint, when all of this one's tasks have written.
      saver.last = [checkpoint, siblings ? 3 : 1];
      return "slow finished";
    }
    const finished = siblings && ["siblings", "overtaken"].includes(state) ? 2 : 0;
    return saver.dieBehind(checkpoint, finished);
  });
  if (state !== "first_call") await graph.invoke(said("Call fast."), thread(id));
  await graph.invoke(said(STATES[state]), thread(id));
}

async function overtake(url, name, id) {
  const [graph] = build(url, name, null);
  await assert.rejects(graph.invoke(said("Are you there?"), thread(id)));
}

// The results that were on disk when the process died, by call id.
function kept(name, state) {
  const fast = { call_2_1: "fast call_2_1", call_2_3: "fast call_2_3" };
  if (state === "behind_the_tools") return { ...fast, call_2_2: "slow finished" };
  const siblings = TASK_A_CALL.includes(name) && ["siblings", "overtaken"].includes(state);
  return siblings ? fast : {};
}

function inAProcess(...command) {
  const program = fileURLToPath(import.meta.url);
  const done = spawnSync(process.execPath, [program, ...command], { stdio: ["ignore", 2, 2] });
  return done.signal ?? done.status;
}

async function leave(url) {
  const saver = connect(url);
  await saver.setup();
  await saver.end();
  const left = [];
  for (const graph of Object.keys(GRAPHS)) {
    for (const state of Object.keys(STATES)) {
      const killed = KILLED_STATES.includes(state);
      for (const way of killed ? ["continue", "message"] : ["answer"]) {
        const thread_id = `${graph} / ${state} / ${way}`;
        assert.equal(inAProcess("write", url, graph, state, thread_id), killed ? KILLED : 0);
        if (state === "overtaken") {
          assert.equal(inAProcess("overtake", url, graph, "-", thread_id), 0);
        }
        left.push({ thread_id, graph, state, way, kept: kept(graph, state) });
      }
    }
  }
  return left;
}

async function goOnWith(url, { graph: name, state, way, thread_id, kept: expected }) {
  const [graph, saver] = build(url, name, async () => {
    throw new Error("The tool ran again.");
  });
  const config = thread(thread_id);
  try {
    const before = await graph.getState(config);
    const { messages } = before.values;
    const dicts = (list) => JSON.parse(JSON.stringify(list));
    if (state === "waiting") {
      const answer = (await graph.invoke(new Command({ resume: "yes" }), config)).messages;
      assert.equal(answer.at(-2).content, "approved: yes", "the answer did not reach the tool");
      assert.equal(answer.at(-1).content, "The tools are done.", "the model did not go on");
      return "";
    }
    check(messages);
    const results = messages.filter((message) => message.getType() === "tool");
    for (const [id, text] of Object.entries(expected)) {
      const found = results.find((message) => message.tool_call_id === id);
      assert.equal(found?.content, text, "a finished result was lost");
    }
    let parked = "";
    if (way === "continue") {
      const answer = await graph.invoke(null, config);
      if (before.next.length) {
        const spoke = state === "overtaken" ? "You said: Are" : "The tools are done.";
        const list = answer.messages;
        assert.deepEqual(dicts(list.slice(0, -1)), dicts(messages), "the history changed");
        assert.ok(list.at(-1).content.startsWith(spoke), "the model did not go on");
      } else {
        const after = (await graph.getState(config)).values.messages;
        assert.deepEqual(dicts(after), dicts(messages));
        parked = "parked";
      }
    }
    let answer = (await graph.invoke(said("Hello?"), config)).messages;
    assert.equal(answer.at(-1).content, "You said: Hello?", "the new message was not answered");
    answer = (await graph.invoke(said("Call fast."), config)).messages;
    assert.equal(answer.at(-1).content, "The tools are done.", "the next tool call failed");
    return parked;
  } finally {
    await saver.end();
  }
}

async function goOn(url, left) {
  const done = [];
  for (const item of left) {
    try {
      done.push({ ...item, held: true, why: await goOnWith(url, item) });
    } catch (error) {
      done.push({ ...item, held: false, why: `${error.name}: ${error.message}`.slice(0, 300) });
    }
  }
  return done;
}

// Whatever a library prints must not stand in the answer.
console.log = console.warn = console.error;
const [verb, url, name, state, id] = process.argv.slice(2);
if (verb === "leave") writeSync(1, JSON.stringify(await leave(url)));
else if (verb === "go_on") {
  writeSync(1, JSON.stringify(await goOn(url, JSON.parse(readFileSync(0, "utf8")))));
} else if (verb === "write") await write(url, name, state, id);
else if (verb === "overtake") await overtake(url, name, id);
else process.exit(64);
process.exit(0);
