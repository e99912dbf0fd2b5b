import type { Hello } from '../../protocol/mqtt/session.ts'
import type { CloudContext } from '../platform/context.ts'
import type { CloudRefusals } from '../platform/refusals.ts'
import type { HubDomain } from './domain.ts'

export interface IdentityPorts {
  context: CloudContext
  domain: HubDomain
  hubId: number
  refusals: CloudRefusals
}

/** Decides which board may use a hub's identity: if two boards run, one is refused (SPEC §3). */
export class Identity {
  readonly #ports: IdentityPorts
  #claimants: Claimants = noClaimants
  /** The session of the last refused board. */
  #refused: string | undefined

  constructor(ports: IdentityPorts) {
    this.#ports = ports
  }

  hasRefused(session: string): boolean {
    return session === this.#refused
  }

  /** Records a message of the board that has the identity. */
  heard(): void {
    this.#claimants = heardHolder(this.#claimants, this.#ports.context.runtime.clock.monotonic())
  }

  /** Whether the board with this hello may have the identity. A conflict is logged, and raises an alarm. */
  async admits({ instance, session }: Pick<Hello, 'instance' | 'session'>): Promise<boolean> {
    if (instance === undefined) return true
    const { context, domain, hubId, refusals } = this.#ports
    const now = context.runtime.clock.monotonic()
    const claim = judgeClaim(this.#claimants, instance, now, context.settings.onlineWithinMs)
    this.#claimants = claim.claimants
    this.#refused = claim.isHolder ? undefined : session
    if (claim.isConflict) {
      refusals.note('hub_identity', `hub-${hubId}`, {
        why: 'two hubs have this identity',
        remedy: 'renew-password, and give the new one to the right hub',
        refused_instance: claim.isHolder ? undefined : instance,
      })
      await context.db.transact((tx) => domain.identityConflict(tx, context, hubId))
    }
    return claim.isHolder
  }
}

/** A life of a hub's service (`hello.instance`), and how long it had the identity. Monotonic milliseconds. */
interface Claimant {
  instance: string
  heldMs: number
}

/** The lives that used a hub's identity, as far as this process knows. */
export interface Claimants {
  holder: (Claimant & { sinceMs: number; heardMs: number }) | undefined
  /** The lives that were welcomed earlier, the latest last. */
  former: readonly Claimant[]
}

export const noClaimants: Claimants = { holder: undefined, former: [] }

interface Claim {
  /** Whether the cloud welcomes this life. */
  isHolder: boolean
  /** Two running services use the identity: a life that was replaced has returned. */
  isConflict: boolean
  claimants: Claimants
}

/** Number of former lives that are remembered. */
const REMEMBERED = 8

/**
 * Decides which service may use a hub's identity. A restarted service or a new board is welcomed, because its former
 * life does not return. If a former life returns, a second hub uses the identity: a copied card, or an old board that
 * was switched on again. The life that had the identity longer keeps it while it sends messages.
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

/** Records a message of the holder other than a hello. */
export const heardHolder = ({ holder, former }: Claimants, now: number): Claimants => ({
  holder: holder && { ...holder, heardMs: now },
  former,
})
