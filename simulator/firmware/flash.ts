import type { AskBoard } from '../board/messages.ts'
import type { AppendLog } from '../storage/append-log.ts'
import type { MemoryEntry } from './operation-memory.ts'
import type { SlotEntry } from './slots.ts'

const isOfSlots = (entry: object): boolean => 'running' in entry || 'image' in entry || 'block' in entry

/** The two parts of a board's flash. The entries of one part survive a replacement of the other. */
export function splitFlash(
  ask: AskBoard,
  entries: readonly object[],
): { memory: AppendLog<MemoryEntry>; slots: AppendLog<SlotEntry> } {
  const parts = { memory: entries.filter((entry) => !isOfSlots(entry)), slots: entries.filter(isOfSlots) }
  const part = (name: 'memory' | 'slots'): AppendLog<object> => ({
    read: () => [...parts[name]],
    append(entry) {
      parts[name].push(entry)
      ask({ do: 'append', entry: { ...(entry as Record<string, unknown>) } })
    },
    replace(whole) {
      parts[name] = [...whole]
      const all = [...parts.slots, ...parts.memory]
      ask({ do: 'replace', entries: all.map((entry) => ({ ...(entry as Record<string, unknown>) })) })
    },
    close() {},
  })
  return {
    memory: part('memory') as AppendLog<MemoryEntry>,
    slots: part('slots') as AppendLog<SlotEntry>,
  }
}
