import { every, type Clock } from '../../../protocol/model/runtime.ts'

export interface Watch {
  clock: Clock
  everyMs: number
  /** Whether the reader still has permission. */
  isAllowed: () => Promise<boolean>
}

/**
 * Forwards a stream while its reader has permission. The check runs every `everyMs`; the stream ends after the first
 * refusal. A chunk is pulled only when the reader pulls one.
 */
export function watchedStream(
  source: ReadableStream<Uint8Array>,
  { clock, everyMs, isAllowed }: Watch,
): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  let isOpen = true
  let stopChecks = (): void => {}
  const finish = (): void => {
    isOpen = false
    stopChecks()
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let isChecking = false
        const check = async (): Promise<void> => {
          isChecking = true
          const mayRead = await isAllowed().finally(() => (isChecking = false))
          if (mayRead || !isOpen) return
          finish()
          controller.close()
          await reader.cancel()
        }
        stopChecks = every(clock, everyMs, () => {
          if (!isChecking) check().catch(() => {})
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
      async cancel(reason) {
        finish()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
