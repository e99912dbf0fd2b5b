/** The ways to identify a caller. A budget may have a share for each. */
export const axes = ['network', 'user', 'key', 'tenant'] as const
export type Axis = (typeof axes)[number]

/**
 * The holder of a part of a budget: the network (`networkOf`), the user or the API key, and the tenant (the owner of
 * hubs). An absent axis is not counted, such as the user of a call without a credential.
 */
export type Holder = Readonly<Partial<Record<Axis, string>>>

export interface BudgetLimits {
  /** The maximum of all holders together. Infinity: only the shares are bounded. */
  total: number
  /** The maximum of one network, user, key or tenant. */
  shares: Readonly<Partial<Record<Axis, number>>>
  /**
   * If a caller has used up a share: `refuse` refuses the call; `replace` ends an earlier hold of the same share, the
   * largest first, then idle ones, then the oldest.
   */
  atShare: 'refuse' | 'replace'
}

export interface HoldOptions {
  /** The amount to take; 1 by default. */
  amount?: number
  /** Ends the work of the hold, which is already released. A hold without `evict` never makes room for another. */
  evict?: () => void
}

/** The limit that was reached: a share, or the total. */
export type Full = Axis | 'total'
export type Taken = { hold: Hold; full?: undefined } | { hold?: undefined; full: Full }

/** A part of a budget, and its holder. */
export interface Hold {
  readonly holder: Holder
  readonly amount: number
  /** Takes more. Returns the reached limit, and then takes nothing; null on success. */
  grow(by: number): Full | null
  /** Idle holds are evicted before busy ones. A new hold is busy. */
  setIdle(isIdle: boolean): void
  /** Counts the hold for another holder from now on. Returns the reached limit, and then changes nothing. */
  moveTo(holder: Holder): Full | null
  /** Releases everything; further calls do nothing. */
  release(): void
}

interface Group {
  amount: number
  /** Idle holds first. Within each set, the hold that has been in this state longest comes first. */
  idle: Set<Held>
  busy: Set<Held>
}

/**
 * Bounds memory, connections, streams or processor time so that no caller can take everything. Each caller has a share per
 * axis. If the total is used up, the largest holder makes room for a caller who holds less. The largest holder itself is
 * refused. A budget is in memory, for one process.
 */
export class Budget {
  readonly limits: BudgetLimits
  readonly #axes: readonly Axis[]
  readonly #groups: Readonly<Record<Axis, Map<string, Group>>>
  #used = 0

  constructor(limits: BudgetLimits) {
    this.limits = limits
    this.#axes = axes.filter((axis) => limits.shares[axis] !== undefined)
    this.#groups = { network: new Map(), user: new Map(), key: new Map(), tenant: new Map() }
  }

  /** The amount of all holders together. */
  get used(): number {
    return this.#used
  }

  /** The amount of one network, user, key or tenant. */
  usedBy(axis: Axis, name: string): number {
    return this.#groups[axis].get(name)?.amount ?? 0
  }

  /** Whether one network, user, key or tenant has an idle hold. */
  hasIdle(axis: Axis, name: string): boolean {
    return (this.#groups[axis].get(name)?.idle.size ?? 0) > 0
  }

  take(holder: Holder, { amount = 1, evict }: HoldOptions = {}): Taken {
    const hold = new Held(this, holder, evict)
    const full = this.grow(hold, amount)
    return full === null ? { hold } : { full }
  }

  grow(hold: Held, by: number): Full | null {
    if (hold.isReleased) return 'total'
    const full = this.#makeRoom(hold.holder, hold, by)
    if (full === null) this.#add(hold, by)
    return full
  }

  moveTo(hold: Held, holder: Holder): Full | null {
    if (hold.isReleased) return 'total'
    const { holder: before, amount } = hold
    this.release(hold)
    const full = this.#makeRoom(holder, hold, amount)
    hold.holder = full === null ? holder : before
    hold.isReleased = false
    this.#add(hold, amount)
    return full
  }

  setIdle(hold: Held, isIdle: boolean): void {
    if (hold.isReleased || hold.isIdle === isIdle) return
    hold.isIdle = isIdle
    for (const [, group] of this.#groupsOf(hold.holder)) {
      group.idle.delete(hold)
      group.busy.delete(hold)
      ;(isIdle ? group.idle : group.busy).add(hold)
    }
  }

  release(hold: Held): void {
    if (hold.isReleased) return
    hold.isReleased = true
    this.#used -= hold.amount
    for (const [axis, group] of this.#groupsOf(hold.holder)) {
      group.amount -= hold.amount
      group.idle.delete(hold)
      group.busy.delete(hold)
      if (group.idle.size + group.busy.size === 0) this.#groups[axis].delete(hold.holder[axis]!)
    }
    hold.amount = 0
  }

  #add(hold: Held, by: number): void {
    hold.amount += by
    this.#used += by
    for (const axis of this.#axes) {
      const name = hold.holder[axis]
      if (name === undefined) continue
      const group = this.#groups[axis].get(name) ?? { amount: 0, idle: new Set(), busy: new Set() }
      this.#groups[axis].set(name, group)
      group.amount += by
      ;(hold.isIdle ? group.idle : group.busy).add(hold)
    }
  }

  *#groupsOf(holder: Holder): Generator<[Axis, Group]> {
    for (const axis of this.#axes) {
      const group = holder[axis] === undefined ? undefined : this.#groups[axis].get(holder[axis])
      if (group) yield [axis, group]
    }
  }

  #makeRoom(holder: Holder, hold: Held, by: number): Full | null {
    for (const axis of this.#axes) {
      const name = holder[axis]
      if (name === undefined) continue
      while (this.usedBy(axis, name) + by > this.limits.shares[axis]!)
        if (!this.#replaceIn(this.#groups[axis].get(name), hold, by)) return axis
    }
    while (this.#used + by > this.limits.total) if (!this.#evictLargest(holder, hold, by)) return 'total'
    return null
  }

  /** Ends a hold of a caller's own group that is at least as large as the new one will be. */
  #replaceIn(group: Group | undefined, hold: Held, by: number): boolean {
    const victim = this.limits.atShare === 'replace' && group ? largestIn(group, hold) : undefined
    if (!victim || victim.amount < hold.amount + by) return false
    this.#evict(victim)
    return true
  }

  /** Ends a hold of the largest holder, on the first axis that the caller has. */
  #evictLargest(holder: Holder, hold: Held, by: number): boolean {
    const axis = this.#axes.find((one) => holder[one] !== undefined)
    if (axis === undefined) return false
    const own = this.#groups[axis].get(holder[axis]!)
    let largest: Group | undefined
    for (const group of this.#groups[axis].values())
      if (group !== own && group.amount > (largest?.amount ?? own?.amount ?? 0) && largestIn(group, hold))
        largest = group
    if (largest === undefined) return this.#replaceIn(own, hold, by)
    this.#evict(largestIn(largest, hold)!)
    return true
  }

  #evict(victim: Held): void {
    this.release(victim)
    victim.evict!()
  }
}

function largestIn({ amount, idle, busy }: Group, except: Held): Held | undefined {
  let largest: Held | undefined
  // If holds are counted rather than measured, all are equal, and there may be thousands.
  const areAlike = amount === idle.size + busy.size
  for (const holds of [idle, busy])
    for (const hold of holds)
      if (hold !== except && hold.evict && hold.amount > (largest?.amount ?? 0)) {
        largest = hold
        if (areAlike && hold.amount === 1) return hold
      }
  return largest
}

class Held implements Hold {
  holder: Holder
  amount = 0
  isIdle = false
  isReleased = false
  readonly evict: (() => void) | undefined
  readonly #budget: Budget

  constructor(budget: Budget, holder: Holder, evict: (() => void) | undefined) {
    this.#budget = budget
    this.holder = holder
    this.evict = evict
  }

  grow(by: number): Full | null {
    return this.#budget.grow(this, by)
  }

  setIdle(isIdle: boolean): void {
    this.#budget.setIdle(this, isIdle)
  }

  moveTo(holder: Holder): Full | null {
    return this.#budget.moveTo(this, holder)
  }

  release(): void {
    this.#budget.release(this)
  }
}
