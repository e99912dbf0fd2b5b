import type { Budget, Holder } from '../../../protocol/model/budget.ts'
import { fullError } from './full.ts'

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
  let end = (): void => {}
  const { hold, full } = budget.take(holder, { evict: () => end() })
  if (!hold) throw fullError(full, 'open streams')
  try {
    const opened = await open()
    const source = bodyOf(opened)
    if (source === undefined) {
      hold.release()
      return { opened, body: undefined }
    }
    const reader = source.getReader() as ReadableStreamDefaultReader<Uint8Array>
    const body = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          end = () => {
            controller.error(new Error('a stream made room for another caller'))
            reader.cancel().catch(() => {})
          }
        },
        async pull(controller) {
          try {
            const { done, value } = await reader.read()
            if (!done) return controller.enqueue(value)
            hold.release()
            controller.close()
          } catch (error) {
            hold.release()
            controller.error(error)
          }
        },
        cancel(reason) {
          hold.release()
          return reader.cancel(reason)
        },
      },
      // Pulls from the source only when the reader pulls.
      { highWaterMark: 0 },
    )
    return { opened, body }
  } catch (error) {
    hold.release()
    throw error
  }
}
