import type { CloudContext } from '../context.ts'

/**
 * Reads what callers may do, and believes it for a while (`grantsKeptMs`): each request would ask for it otherwise, and it
 * hardly ever changes. Whatever process takes a grant back, it ends everywhere within that time. What is not there is never
 * kept, so that a caller's first grant begins at once; one that is changed or added begins within that time. Requests that come
 * together share one reading.
 */
export function keptGrants<K, V>(
  { runtime, settings }: Pick<CloudContext, 'runtime' | 'settings'>,
  read: (key: K) => Promise<V | undefined>,
): (key: K) => Promise<V | undefined> {
  const known = new Map<K, { readAt: number; grant: Promise<V | undefined> }>()
  return (key) => {
    const readAt = runtime.clock.monotonic()
    const current = known.get(key)
    if (current && readAt - current.readAt < settings.grantsKeptMs) return current.grant
    const entry = { readAt, grant: read(key) }
    known.set(key, entry)
    const forget = (): void => {
      if (known.get(key) === entry) known.delete(key)
    }
    entry.grant.then((grant) => {
      if (grant === undefined) forget()
    }, forget)
    return entry.grant
  }
}
