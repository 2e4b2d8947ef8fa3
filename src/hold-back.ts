import { ToolCall } from './call.ts';
import { A_CHANNEL, Passage } from './channel.ts';
import type { Content, ContentPart } from './content.ts';
import { Gathering } from './gathering.ts';
import { restOf } from './rest-of.ts';

/**
 * The channel of a layer that changes answers: it holds the parts back, and lets out the layer's own answer once that is there. A class
 * made of it may let out earlier what is certain.
 *
 * @example
 * const held = new HoldBack(call.channel);
 * return after(next(call.with({ channel: held })), (outcome) => held.finish(call, { ...outcome, content: changed(outcome.content) }));
 */
export class HoldBack extends Passage {
  readonly #out = new Gathering();
  #hasLetOut = false;
  #isFinished = false;

  override part(_part: ContentPart, _call: ToolCall): PromiseLike<unknown> | undefined {
    return undefined;
  }

  /** What is inside has given all its parts; this layer has not. */
  override done(_content: Content): unknown {
    return undefined;
  }

  protected get hasLetOut(): boolean {
    return this.#hasLetOut;
  }

  /** Passes a part on that the layer's answer is sure to have, at this place. */
  protected letOut(part: ContentPart, call: ToolCall): PromiseLike<unknown> | undefined {
    // What waited for the part before it to be taken has gone with the rest.
    if (this.#isFinished) return undefined;
    this.#hasLetOut = true;
    this.#out.addPart(part);
    return super.part(part, call);
  }

  /** Does something when a part has been taken, for two must not be on their way at once. */
  protected afterTaken(
    taken: PromiseLike<unknown> | undefined,
    goOn: () => PromiseLike<unknown> | undefined,
  ): PromiseLike<unknown> | undefined {
    return taken === undefined ? goOn() : Promise.resolve(taken).then(goOn);
  }

  /** Passes on what the layer's answer has beyond what was let out. Gives the answer. */
  finish<Answer extends { readonly content: Content }>(call: ToolCall, answer: Answer): Answer {
    this.#isFinished = true;
    // Where nothing has left, the whole answer leaves further outside, or is made again.
    const rest = this.#hasLetOut ? restOf(answer.content, this.#out.content) : undefined;
    if (rest === undefined) return answer;
    const { host } = ToolCall.scope(call).dispatch;
    for (const part of rest) host.tell(A_CHANNEL, () => super.part(part, call));
    host.tell(A_CHANNEL, () => super.done(answer.content));
    return answer;
  }
}
