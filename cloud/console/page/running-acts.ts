import { signal } from '@preact/signals'

const running = signal<ReadonlySet<string>>(new Set())

/** Whether an act of this name is running. A component that reads this is drawn again when it changes. */
export const isRunning = (name: string): boolean => running.value.has(name)

/** Executes an act, unless the same act is running: an answer may be slow, and the person presses again. */
export async function once(name: string, work: () => Promise<unknown>): Promise<void> {
  if (running.peek().has(name)) return
  running.value = new Set([...running.peek(), name])
  try {
    await work()
  } finally {
    running.value = new Set([...running.peek()].filter((one) => one !== name))
  }
}
