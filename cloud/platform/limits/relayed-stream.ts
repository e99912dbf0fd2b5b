import type { Budget, Holder } from '../../../protocol/model/budget.ts'
import { every, type Clock } from '../../../protocol/model/runtime.ts'
import { fullError } from './full.ts'

/**
 * Forwards a stream. A chunk is pulled only when the reader pulls one. `begin` gets a function that ends the stream early,
 * with an error or without, and returns a function that is called when the stream is over, whatever has ended it.
 */
function relayed(
  source: ReadableStream<Uint8Array>,
  begin: (end: (error?: Error) => void) => () => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  let isOpen = true
  let over = (): void => {}
  const finish = (): void => {
    isOpen = false
    over()
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        over = begin((error) => {
          if (!isOpen) return
          finish()
          if (error) controller.error(error)
          else controller.close()
          reader.cancel().catch(() => {})
        })
      },
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!isOpen) return
          if (!done) return controller.enqueue(value)
          finish()
          controller.close()
        } catch (error) {
          finish()
          throw error
        }
      },
      cancel(reason) {
        finish()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * Opens a stream that takes a part of a budget until it ends. Its source or its reader can end it, and so can the
 * budget, to make room for another caller. Throws `rate_limit_exceeded` or `service_unavailable` if no part is left.
 */
export async function heldStream<T>(
  budget: Budget,
  holder: Holder,
  open: () => Promise<T>,
  bodyOf: (opened: T) => ReadableStream | undefined,
): Promise<{ opened: T; body: ReadableStream | undefined }> {
  let isEvicted = false
  let evict = (): void => void (isEvicted = true)
  const { hold, full } = budget.take(holder, { evict: () => evict() })
  if (!hold) throw fullError(full, 'open streams')
  try {
    const opened = await open()
    const source = bodyOf(opened)
    if (source === undefined) {
      hold.release()
      return { opened, body: undefined }
    }
    const body = relayed(source, (end) => {
      evict = () => end(new Error('a stream made room for another caller'))
      return () => hold.release()
    })
    if (!isEvicted) return { opened, body }
    await body.cancel()
    throw fullError('total', 'open streams')
  } catch (error) {
    hold.release()
    throw error
  }
}

interface Watch {
  clock: Clock
  everyMs: number
  /** Whether the reader still has permission. */
  isAllowed: () => Promise<boolean>
}

/** Forwards a stream while its reader has permission. The stream ends after the first check that refuses it. */
export const watchedStream = (
  source: ReadableStream<Uint8Array>,
  { clock, everyMs, isAllowed }: Watch,
): ReadableStream<Uint8Array> =>
  relayed(source, (end) => {
    let isChecking = false
    const check = async (): Promise<void> => {
      isChecking = true
      const mayRead = await isAllowed().finally(() => (isChecking = false))
      if (!mayRead) end()
    }
    return every(clock, everyMs, () => {
      if (!isChecking) check().catch(() => {})
    })
  })
