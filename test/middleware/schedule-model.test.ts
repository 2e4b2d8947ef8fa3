import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  AbortReason,
  createDispatcher,
  type Dispatcher,
  defineTool,
  type Middleware,
  type ToolCall,
  type ToolCallRequest,
  ToolContext,
  toolError,
} from 'toolonion';
import { schedule } from 'toolonion/middleware';
import { gate } from '../support/gate.ts';
import { turns } from '../support/manual-clock.ts';
import { soon } from '../support/soon.ts';
import { expectNothingUnhandled } from '../support/unhandled.ts';
import { Work } from '../support/work.ts';

expectNothingUnhandled();

const ANY = Number.POSITIVE_INFINITY;

// A model of the layer, in the plainest words. A lane has the calls of one session as they came; with a call of a batch come the places of
// those before it in the batch, which are coming. A call may run once nothing before it in its lane holds it up, nobody has its key, and
// a slot of the layer and one of its batch are free. Whatever comes, ends and is aborted: nobody runs who may not, and nobody waits who may.

interface Input {
  readonly isSafe?: boolean;
  readonly key?: string;
}

/** What a tool says of its calls. */
interface Kind {
  readonly name: string;
  readonly concurrencySafe?: boolean | ((input: Input) => boolean);
  readonly resourceKey?: (input: Input) => string | undefined;
}

const concurrencySafe = ({ isSafe }: Input) => isSafe === true;
const resourceKey = ({ key }: Input) => key;
const KINDS: readonly Kind[] = [
  { name: 'read', concurrencySafe: true },
  { name: 'edit', concurrencySafe: true, resourceKey },
  { name: 'write' },
  { name: 'replace', resourceKey },
  { name: 'query', concurrencySafe },
  { name: 'update', concurrencySafe, resourceKey },
];

interface Plan {
  readonly kind: Kind;
  readonly input: Input;
  /** Whether it is held up on its way to the layer. */
  readonly isHeld: boolean;
}

/** Calls that came together, or one that came alone. */
interface Group {
  readonly calls: ModelCall[];
  readonly limit: number;
  readonly stop: AbortController;
}

interface ModelCall extends Plan {
  readonly id: string;
  readonly group: Group;
  readonly lane: ModelCall[];
  /** It is `away` until it has a place in its lane. */
  stage: 'away' | 'coming' | 'waiting' | 'running' | 'over';
}

function isSafe({ kind, input }: Plan): boolean {
  const { concurrencySafe = false } = kind;
  return typeof concurrencySafe === 'boolean' ? concurrencySafe : concurrencySafe(input);
}

function isKeyed({ kind }: Plan): boolean {
  return kind.resourceKey !== undefined;
}

function keyOf({ kind, input }: Plan): string | undefined {
  return kind.resourceKey?.(input);
}

/** Whether a call keeps another that stands behind it in its lane from running. */
function holdsUp(call: ModelCall, behind: ModelCall): boolean {
  if (call.stage === 'over') return false;
  if (!isSafe(behind)) return true;
  if (call.stage !== 'coming') return !isSafe(call);
  // Nobody knows its arguments yet.
  return call.kind.concurrencySafe !== true || (isKeyed(call) && isKeyed(behind));
}

class Model {
  readonly faults: string[] = [];
  readonly #calls = new Map<string, ModelCall>();
  readonly #lanes: readonly ModelCall[][] = [[], []];
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get underWay(): readonly ModelCall[] {
    return [...this.#calls.values()].filter(({ stage }) => stage !== 'over');
  }

  add(plans: readonly Plan[], session: number, limit: number): Group {
    const group: Group = { calls: [], limit, stop: new AbortController() };
    const lane = this.#lanes[session] as ModelCall[];
    for (const plan of plans) {
      const id = `${plan.isHeld ? 'held' : 'call'}${this.#calls.size}`;
      const call: ModelCall = { ...plan, id, group, lane, stage: 'away' };
      group.calls.push(call);
      this.#calls.set(id, call);
    }
    return group;
  }

  /** A call has come to the layer. */
  arrive(id: string): void {
    const call = this.#calls.get(id) as ModelCall;
    if (call.stage === 'over') return;
    const { calls } = call.group;
    for (const each of calls.slice(0, calls.indexOf(call) + 1)) {
      if (each.stage !== 'away') continue;
      each.stage = 'coming';
      each.lane.push(each);
    }
    call.stage = 'waiting';
  }

  start(id: string): void {
    const call = this.#calls.get(id) as ModelCall;
    const hasNoTurn = this.#sharing(call).some((other) => other.stage === 'running' || before(call).includes(other));
    if (before(call).some((other) => holdsUp(other, call))) this.faults.push(`${id} overtakes`);
    if (hasNoTurn) this.faults.push(`${id} has a key that is another's`);
    if (!this.#hasSlot(call)) this.faults.push(`${id} has no slot`);
    call.stage = 'running';
  }

  end(id: string): void {
    (this.#calls.get(id) as ModelCall).stage = 'over';
  }

  /** Everything has settled. */
  rest(): void {
    for (const call of this.underWay.filter(({ stage }) => stage === 'waiting')) {
      const isHeldUp = before(call).some((other) => holdsUp(other, call));
      if (!isHeldUp && this.#sharing(call).length === 0 && this.#hasSlot(call))
        this.faults.push(`${call.id} waits for nothing`);
    }
  }

  /** Those who have, or wait for, the same key. */
  #sharing(call: ModelCall): readonly ModelCall[] {
    const key = keyOf(call);
    if (key === undefined) return [];
    const others = this.underWay.filter(({ stage }) => stage === 'waiting' || stage === 'running');
    return others.filter((other) => other !== call && keyOf(other) === key);
  }

  #hasSlot({ group }: ModelCall): boolean {
    const running = this.underWay.filter(({ stage }) => stage === 'running');
    return running.length < this.#limit && running.filter((other) => other.group === group).length < group.limit;
  }
}

function before(call: ModelCall): readonly ModelCall[] {
  return call.lane.slice(0, call.lane.indexOf(call));
}

/** What happens next. `which` counts round those to whom it can happen. */
type Step =
  | { readonly type: 'batch'; readonly plans: readonly Plan[]; readonly session: number; readonly limit: number }
  | { readonly type: 'call'; readonly plan: Plan; readonly session: number }
  | { readonly type: 'end' | 'open' | 'abort'; readonly which: number };

const plan: fc.Arbitrary<Plan> = fc.record({
  kind: fc.constantFrom(...KINDS),
  input: fc.record({ isSafe: fc.boolean(), key: fc.constantFrom('f', 'g') }, { requiredKeys: [] }),
  isHeld: fc.boolean(),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('batch'),
      plans: fc.array(plan, { minLength: 1, maxLength: 6 }),
      session: fc.nat(1),
      limit: fc.constantFrom(1, 2, ANY),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('call'), plan, session: fc.nat(1) }) },
  { weight: 8, arbitrary: fc.record({ type: fc.constant('end'), which: fc.nat() }) },
  { weight: 5, arbitrary: fc.record({ type: fc.constant('open'), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('abort'), which: fc.nat() }) },
);

/** The layer and the model of it, side by side. */
class Comparison {
  readonly model: Model;
  readonly #work = new Work();
  readonly #gate = gate();
  readonly #sessions = [new ToolContext(), new ToolContext()];
  readonly #dispatcher: Dispatcher;

  constructor(limit: number) {
    const model = new Model(limit);
    const arrives: Middleware = (call, next) => {
      model.arrive(call.id);
      return next(call);
    };
    const runs: Middleware = async (call, next) => {
      model.start(call.id);
      const outcome = await next(call);
      model.end(call.id);
      return outcome;
    };
    this.model = model;
    this.#dispatcher = createDispatcher({
      tools: KINDS.map((kind) => this.#work.tool(kind.name, kind)),
      middleware: [this.#gate.layer, arrives, schedule({ concurrency: limit }), runs],
    });
  }

  async take(step: Step): Promise<void> {
    if (step.type === 'batch') this.#dispatchAll(step.plans, step.session, step.limit);
    else if (step.type === 'call') this.#dispatch(step.plan, step.session);
    else if (step.type === 'end') this.#work.end(...nth(this.#work.running, step.which));
    else if (step.type === 'open') for (const id of nth(this.#held, step.which)) this.#gate.open(id);
    else for (const call of nth(this.model.underWay, step.which)) this.#abort(call.group);
    await turns();
    this.model.rest();
  }

  #dispatchAll(plans: readonly Plan[], session: number, limit: number): void {
    const { calls, stop } = this.model.add(plans, session, limit);
    const onResult = (_: unknown, place: number) => this.model.end((calls[place] as ModelCall).id);
    void this.#dispatcher.dispatchAll(calls.map(requestOf), {
      context: this.#sessions[session] as ToolContext,
      signal: stop.signal,
      concurrency: limit,
      onResult,
    });
  }

  #dispatch(plan: Plan, session: number): void {
    const { calls, stop } = this.model.add([plan], session, ANY);
    const [call] = calls as [ModelCall];
    const options = { context: this.#sessions[session] as ToolContext, signal: stop.signal };
    void this.#dispatcher.dispatch(requestOf(call), options).then(() => this.model.end(call.id));
  }

  /** Those that the gate holds. */
  get #held(): readonly string[] {
    const isHeld = ({ isHeld, stage }: ModelCall) => isHeld && (stage === 'away' || stage === 'coming');
    return this.model.underWay.filter(isHeld).map(({ id }) => id);
  }

  #abort({ calls, stop }: Group): void {
    for (const { id, stage } of calls) if (stage !== 'running') this.model.end(id);
    stop.abort();
  }

  /** Lets everything come and end. */
  async finish(): Promise<void> {
    const isDone = () => this.model.underWay.length === 0 || this.model.faults.length > 0;
    for (let round = 0; round < 100 && !isDone(); round++) {
      for (const id of this.#held) this.#gate.open(id);
      await turns();
      this.#work.end(...this.#work.running);
      await turns();
      this.model.rest();
    }
  }
}

function requestOf({ id, kind, input }: ModelCall): ToolCallRequest {
  return { id, name: kind.name, arguments: { ...input, id } };
}

/** The one that counting round comes to; none of none. */
function nth<Item>(items: readonly Item[], count: number): readonly Item[] {
  return items.length === 0 ? [] : [items[count % items.length] as Item];
}

test('the layer does as its model: nobody runs who may not, and nobody waits who may', async () => {
  const steps = fc.array(step, { minLength: 3, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(steps, fc.constantFrom(1, 2, 3, ANY), async (steps, limit) => {
      const comparison = new Comparison(limit);
      for (const step of steps) if (comparison.model.faults.length === 0) await comparison.take(step);
      await comparison.finish();
      expect(comparison.model.faults).toEqual([]);
      expect(comparison.model.underWay).toEqual([]);
    }),
    { numRuns: 500 },
  );
}, 60_000);

// Calls that make calls, through two dispatchers that share the layer, with a layer outside that holds calls up, repeats them, and gives
// them up: who runs is compared with who must not meet, and nothing hangs.

interface Trial {
  readonly kind: 'safe' | 'alone' | 'judged';
  readonly isSafe: boolean;
  readonly key: string | undefined;
  /** Turns of the event loop it is held up, and takes. */
  readonly held: number;
  readonly takes: number;
  readonly fails: boolean;
  /** Turns after which the layer outside gives it up; 0 for never. */
  readonly patience: number;
  readonly again: boolean;
  readonly nested: readonly Trial[];
  readonly how: 'together' | 'one by one' | 'in sequence' | 'failing fast' | 'each alone';
  /** Whether it makes them through the other dispatcher. */
  readonly isElsewhere: boolean;
}

const trialOf = (depth: number): fc.Arbitrary<Trial> =>
  fc.record({
    kind: fc.constantFrom('safe', 'alone', 'judged'),
    isSafe: fc.boolean(),
    key: fc.constantFrom(undefined, undefined, 'f', 'g', 'h'),
    held: fc.nat(3),
    takes: fc.nat(3),
    fails: fc.boolean(),
    patience: fc.constantFrom(0, 0, 0, 1, 3),
    again: fc.constantFrom(false, false, true),
    nested: depth === 0 ? fc.constant([]) : fc.array(trialOf(depth - 1), { maxLength: 3 }),
    how: fc.constantFrom('together', 'one by one', 'in sequence', 'failing fast', 'each alone'),
    isElsewhere: fc.boolean(),
  });

const PLAIN: Trial = {
  kind: 'safe',
  isSafe: true,
  key: undefined,
  held: 0,
  takes: 0,
  fails: false,
  patience: 0,
  again: false,
  nested: [],
  how: 'together',
  isElsewhere: false,
};

/** Whether tools may be stopped, and go on by themselves beside what comes after them: they do not look at their signals. */
function isStopped({ patience, how, nested }: Trial): boolean {
  return patience > 0 || how === 'failing fast' || nested.some(isStopped);
}

function toRequest(trial: Trial): ToolCallRequest {
  return { name: trial.kind, arguments: trial };
}

/** Who runs, and who met whom they must not meet. */
class Watch {
  readonly faults: string[] = [];
  readonly #limit: number;
  readonly #running = new Map<ToolCall, Trial>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  begin(call: ToolCall, trial: Trial): void {
    for (const [other, its] of this.#running)
      if (!mayMeet(call, trial, other, its)) this.faults.push(`${call.id} beside ${other.id}`);
    this.#running.set(call, trial);
    // One that waits for calls it has made lends them its slot.
    const lent = new Set([...this.#running.keys()].flatMap(ancestorsOf));
    const atWork = [...this.#running.keys()].filter((each) => !lent.has(each)).length;
    if (atWork > this.#limit) this.faults.push(`${atWork} at once`);
  }

  end(call: ToolCall): void {
    this.#running.delete(call);
  }
}

function ancestorsOf({ parent }: ToolCall): readonly ToolCall[] {
  return parent === undefined ? [] : [parent, ...ancestorsOf(parent)];
}

function mayMeet(call: ToolCall, trial: Trial, other: ToolCall, its: Trial): boolean {
  if (ancestorsOf(call).includes(other) || ancestorsOf(other).includes(call)) return true;
  if (trial.key !== undefined && trial.key === its.key) return false;
  const isSafe = ({ kind, isSafe }: Trial) => kind === 'safe' || (kind === 'judged' && isSafe);
  return call.parent !== other.parent || (isSafe(trial) && isSafe(its));
}

/** Two dispatchers of one session whose calls share a layer. */
function setUp(concurrency: number) {
  const watch = new Watch(concurrency);
  const inputSchema = { type: 'object' } as const;
  const execute = async (input: unknown, call: ToolCall) => {
    const trial = input as Trial;
    watch.begin(call, trial);
    try {
      await turns(trial.takes);
      await makeCalls(trial, call);
      if (trial.fails) throw new Error('no');
      return 'done';
    } finally {
      watch.end(call);
    }
  };
  const makeCalls = ({ nested, how, isElsewhere }: Trial, parent: ToolCall) => {
    const dispatcher: Dispatcher = isElsewhere ? second : first;
    const requests = nested.map(toRequest);
    if (how === 'each alone') return Promise.all(requests.map((request) => dispatcher.dispatch(request, { parent })));
    return dispatcher.dispatchAll(requests, {
      parent,
      concurrency: how === 'one by one' ? 1 : ANY,
      mode: how === 'in sequence' ? 'sequential' : 'parallel',
      failFast: how === 'failing fast',
    });
  };
  const resourceKey = (input: unknown) => (input as Trial).key;
  const isSafe = (input: unknown) => (input as Trial).isSafe;
  const common = { description: 'Makes calls.', inputSchema, resourceKey, execute };
  const tools = [
    defineTool({ name: 'safe', concurrencySafe: true, ...common }),
    defineTool({ name: 'alone', ...common }),
    defineTool({ name: 'judged', concurrencySafe: isSafe, ...common }),
  ];
  const outside: Middleware = async (call, next) => {
    const { held, patience, again } = call.input as unknown as Trial;
    await turns(held);
    const scope = call.abortScope();
    const outcome = scope.follow(next(scope.call));
    if (patience > 0) void turns(patience).then(() => scope.abort(new AbortReason(toolError('timeout', 'Enough.'))));
    const settled = await outcome;
    return again ? next(call) : settled;
  };
  const shared = schedule({ concurrency });
  const context = new ToolContext();
  const first = createDispatcher({ context, tools, middleware: [outside, shared] });
  const second = createDispatcher({ context, tools, middleware: [shared, async (call, next) => next(call)] });
  return { watch, first, second };
}

test('whatever calls are made by calls, none meets one it must not meet, all have their result, and nothing hangs', async () => {
  const limits = fc.constantFrom(1, 2, 3, ANY);
  await fc.assert(
    fc.asyncProperty(
      fc.array(trialOf(2), { maxLength: 5 }),
      limits,
      limits,
      fc.option(fc.nat(20), { freq: 3 }),
      fc.boolean(),
      async (trials, concurrency, limit, abortsAfter, failFast) => {
        const { watch, first, second } = setUp(concurrency);
        const stop = new AbortController();
        const { signal } = stop;
        const requests = trials.map(toRequest);
        const batches = Promise.all([
          first.dispatchAll(requests, { signal, concurrency: limit, failFast }),
          second.dispatchAll(requests.slice(0, 2), { signal }),
        ]);
        if (abortsAfter !== null) {
          await turns(abortsAfter);
          stop.abort();
        }
        const [results] = await soon(batches, 2000);
        expect(results).toHaveLength(trials.length);
        const isStrict = abortsAfter === null && !failFast && !trials.some(isStopped);
        if (isStrict) expect(watch.faults).toEqual([]);
        const after: readonly Trial[] = [
          { ...PLAIN, kind: 'alone' },
          ...['f', 'g', 'h'].map((key) => ({ ...PLAIN, key })),
        ];
        const ended = await soon(first.dispatchAll(after.map(toRequest)));
        expect(ended.map(({ content }) => content)).toEqual(after.map(() => 'done'));
      },
    ),
    { numRuns: 300 },
  );
}, 60_000);
