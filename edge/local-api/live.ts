import type { Context } from 'hono'
import { streamSSE } from 'hono/streaming'
import { changesOf, type Json } from '../../protocol/model/json-changes.ts'
import type { Clock } from '../../protocol/model/runtime.ts'

/** Interval of comments, so that no proxy considers the connection dead. */
const COMMENT_MS = 15_000

/**
 * Server-sent events: first `state` with the whole state, then `changes` of it (`json-changes.ts`). The
 * stream ends when the reader disconnects or its login ends. The hub is polled every `liveMs` only while a
 * reader is connected. `isOver`: another hub answers now, so the page must reconnect.
 */
export function liveState(
  c: Context,
  {
    clock,
    liveMs,
    isAllowed,
    isOver = () => false,
  }: { clock: Clock; liveMs: number; isAllowed: () => boolean; isOver?: (() => boolean) | undefined },
  look: () => object,
): Response {
  const pause = (): Promise<void> => new Promise((resolve) => void clock.after(liveMs, resolve))
  return streamSSE(c, async (stream) => {
    let before: Json | undefined
    let saidAt = clock.monotonic()
    while (!stream.aborted && !stream.closed && isAllowed() && !isOver()) {
      const now = look() as Json
      const changes = before === undefined ? undefined : changesOf(before, now)
      before = now
      if (changes === undefined || changes.length > 0) {
        const event = changes === undefined ? 'state' : 'changes'
        await stream.writeSSE({ event, data: JSON.stringify(changes ?? now) })
        saidAt = clock.monotonic()
      } else if (clock.monotonic() - saidAt > COMMENT_MS) {
        await stream.write(': here\n\n')
        saidAt = clock.monotonic()
      }
      await pause()
    }
  })
}
