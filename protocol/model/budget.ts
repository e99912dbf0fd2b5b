/** The marks of a caller. A budget has a share for some of them. */
export const axes = ['network', 'user', 'key', 'tenant'] as const
export type Axis = (typeof axes)[number]

/**
 * Who holds a part of a budget: the network (`networkOf`), the user or the API key, and the tenant (the owner of hubs). An axis
 * that is absent, such as the user of a call without a credential, is not counted.
 */
export type Holder = Readonly<Partial<Record<Axis, string>>>

export interface BudgetLimits {
  /** The most that all holders have together. Infinity: only the shares are bounded. */
  total: number
  /** The most that one network, user, key or tenant holds. */
  shares: Readonly<Partial<Record<Axis, number>>>
  /**
   * What happens to a caller who has used up a share. `refuse`: the call is refused. `replace`: an earlier hold of the same
   * share ends in its place, the largest one first, then idle ones, then the oldest.
   */
  atShare: 'refuse' | 'replace'
}

export interface HoldOptions {
  /** The amount to take; 1 by default. */
  amount?: number
  /** Ends the work behind the hold, which is released already. A hold without it never makes room for another. */
  evict?: () => void
}

/** Why nothing was taken: a share is used up, or the total. */
export type Full = Axis | 'total'
export type Taken = { hold: Hold; full?: undefined } | { hold?: undefined; full: Full }

/** A part of a budget, and its holder. */
export interface Hold {
  readonly holder: Holder
  readonly amount: number
  /** Takes more. Returns why that is impossible, and then takes nothing; null on success. */
  grow(by: number): Full | null
  /** An idle hold makes room before those at work. A new hold is at work. */
  setIdle(isIdle: boolean): void
  /** Counts the hold for another holder from now on. Returns why that is impossible, and then changes nothing. */
  moveTo(holder: Holder): Full | null
  /** Gives everything back; further calls do nothing. */
  release(): void
}

interface Group {
  amount: number
  /** Idle ones first; within each set the one first that has been in this state longest. */
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

  /** For `Hold`. */
  grow(hold: Held, by: number): Full | null {
    if (hold.isReleased) return 'total'
    const full = this.#makeRoom(hold.holder, hold, by)
    if (full === null) this.#add(hold, by)
    return full
  }

  /** For `Hold`. */
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

  /** For `Hold`. */
  setIdle(hold: Held, isIdle: boolean): void {
    if (hold.isReleased || hold.isIdle === isIdle) return
    hold.isIdle = isIdle
    for (const [, group] of this.#groupsOf(hold.holder)) {
      group.idle.delete(hold)
      group.busy.delete(hold)
      ;(isIdle ? group.idle : group.busy).add(hold)
    }
  }

  /** For `Hold`. */
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
  // Where things are counted all holds are alike, and there may be thousands.
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
