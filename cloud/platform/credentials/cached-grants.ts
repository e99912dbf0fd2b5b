import { BoundedMap } from '../bounded-map.ts'
import type { CloudContext } from '../context.ts'

/** Maximum number of cached grants of a kind. */
const MOST = 20_000

/**
 * Caches the rights of callers for `grantsKeptMs`, because they hardly ever change and each request would read them. A
 * revoked right ends in all processes within that time; a changed or added right starts within it. Absent rights are
 * never cached, so that a caller's first right starts at once. Concurrent requests share one read.
 */
export function cachedGrants<K extends string | number, V>(
  { runtime, settings }: Pick<CloudContext, 'runtime' | 'settings'>,
  read: (key: K) => Promise<V | undefined>,
): (key: K) => Promise<V | undefined> {
  const known = new BoundedMap<{ readAt: number; grant: Promise<V | undefined> }>(MOST)
  return (name) => {
    const key = String(name)
    const readAt = runtime.clock.monotonic()
    const current = known.get(key)
    if (current && readAt - current.readAt < settings.grantsKeptMs) return current.grant
    const entry = { readAt, grant: read(name) }
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
