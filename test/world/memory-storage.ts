import type { AppendLog, SimulatorStorage } from '../../simulator/storage/append-log.ts'

/** A simulator's storage that outlives the simulated hub that uses it. */
export function memoryStorage(): SimulatorStorage {
  const logs = new Map<string, unknown[]>()
  return {
    open<Entry>(name: string): AppendLog<Entry> {
      let entries = (logs.get(name) ?? []) as Entry[]
      logs.set(name, entries)
      return {
        read: () => [...entries],
        append: (entry) => void entries.push(entry),
        replace(replacement) {
          entries = [...replacement]
          logs.set(name, entries)
        },
      }
    },
    close() {},
  }
}
