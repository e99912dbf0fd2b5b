/** A life of a hub's service (`hello.instance`), and for how long the identity was its own. Milliseconds, monotonic. */
interface Claimant {
  instance: string
  heldMs: number
}

/** Who has come with a hub's identity, as far as this process has heard. */
export interface Claimants {
  holder: (Claimant & { sinceMs: number; heardMs: number }) | undefined
  /** Those that were welcomed before, the latest last. */
  former: readonly Claimant[]
}

export const noClaimants: Claimants = { holder: undefined, former: [] }

export interface Claim {
  /** Whether it is to be welcomed. */
  isHolder: boolean
  /** Two that live have come: one that was left has returned. */
  isConflict: boolean
  claimants: Claimants
}

/** So many lives are remembered. */
const REMEMBERED = 8

/**
 * Judges who comes with a hub's identity. A service that was started anew, or a new board, is welcomed: what it was before
 * does not return. What was left and returns is a second hub that lives: a card that was copied, an old board that was
 * switched on again. The identity stays with the one that had it for longer, as long as that one is heard.
 */
export function judgeClaim(claimants: Claimants, instance: string, now: number, silentMs: number): Claim {
  const { holder, former } = claimants
  const earlier = former.find((each) => each.instance === instance)
  if (holder?.instance === instance) {
    const heard = { ...holder, heldMs: now - holder.sinceMs, heardMs: now }
    return { isHolder: true, isConflict: false, claimants: { holder: heard, former } }
  }
  const isConflict = holder !== undefined && earlier !== undefined && now - holder.heardMs < silentMs
  if (isConflict && earlier.heldMs <= now - holder.sinceMs) return { isHolder: false, isConflict, claimants }
  const left = holder && { instance: holder.instance, heldMs: now - holder.sinceMs }
  const others = [...former.filter((each) => each !== earlier), ...(left ? [left] : [])]
  const heldMs = earlier?.heldMs ?? 0
  return {
    isHolder: true,
    isConflict,
    claimants: {
      holder: { instance, heldMs, sinceMs: now - heldMs, heardMs: now },
      former: others.slice(-REMEMBERED),
    },
  }
}

/** The holder was heard in another way than by a hello. */
export const heardHolder = ({ holder, former }: Claimants, now: number): Claimants => ({
  holder: holder && { ...holder, heardMs: now },
  former,
})
