import type { Hello } from '../../protocol/mqtt/session.ts'
import type { CloudContext } from '../platform/context.ts'
import type { CloudRefusals } from '../platform/refusals.ts'
import { heardHolder, judgeClaim, noClaimants, type Claimants } from './claimants.ts'
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
