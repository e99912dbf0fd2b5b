import type { Context } from 'hono'
import { streamSSE } from 'hono/streaming'
import { changesOf, type Json } from '../../protocol/model/json-changes.ts'
import type { Clock } from '../../protocol/model/runtime.ts'

/** A comment this often, so that nothing between takes the connection for dead. */
const COMMENT_MS = 15_000

/**
 * Server-sent events: `state`, the whole, and then `changes` of it (`json-changes.ts`), until the reader goes or its login ends. The hub is looked
 * at again every `liveMs` while somebody reads, and not at all otherwise. `isOver`: another hub answers by now; the page comes again.
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
