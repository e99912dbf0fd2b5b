/**
 * The process that serves a hub, by rendezvous hashing. Every process computes the same result from the same names. If
 * a process joins or leaves, only its hubs move.
 */
export function serverOf(hubId: number, processes: readonly Contender[]): string | undefined {
  const hub = mixed(hubId)
  let best: { id: string; weight: number } | undefined
  for (const { id, seed } of processes) {
    const weight = mixed(hub ^ seed)
    if (!best || weight > best.weight || (weight === best.weight && id > best.id)) best = { id, weight }
  }
  return best?.id
}

/** A process that may serve hubs, with the hash of its name. */
export interface Contender {
  id: string
  seed: number
}

export const contender = (id: string): Contender => ({ id, seed: hashOf(id) })

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return mixed(hash)
}

/** The finalizer of MurmurHash3: each bit of the result depends on each bit of the number. */
function mixed(number: number): number {
  let hash = number ^ (number >>> 16)
  hash = Math.imul(hash, 0x85ebca6b)
  hash ^= hash >>> 13
  hash = Math.imul(hash, 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
