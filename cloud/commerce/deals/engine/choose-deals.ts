import { applyDeal, type Application } from './apply-deal.ts'
import { inOrder, type Cart, type Deal } from './deal.ts'
import type { Buyer } from './triggers.ts'
import { minus, noUnits, plus } from './units.ts'

/** What all deals together do to a cart. Cents. */
export interface Plan {
  applications: readonly Application[]
  /** By line. */
  units: number[]
  discounts: number[]
  saving: number
}

/**
 * Chooses among deals that may apply (contract §8). One that does not stack applies alone; those that stack apply together,
 * in order, each to the units that the ones before it have left. What saves most wins; of equal savings the one with the
 * lowest id among its deals.
 */
export function chooseDeals(deals: readonly Deal[], cart: Cart, buyer: Buyer): Plan {
  const alone = deals.filter(({ terms }) => !terms.stackable).map((deal) => [deal])
  const together = deals.filter(({ terms }) => terms.stackable)
  return [...alone, together]
    .map((group) => applyInOrder(group, cart, buyer))
    .reduce((best, plan) => (isBetter(plan, best) ? plan : best))
}

function isBetter(a: Plan, b: Plan): boolean {
  return a.saving > b.saving || (a.saving === b.saving && lowestId(a) < lowestId(b))
}

const lowestId = ({ applications }: Plan): number => Math.min(...applications.map(({ deal }) => deal.id))

/** At most one deal makes a unit cheaper. */
function applyInOrder(deals: readonly Deal[], cart: Cart, buyer: Buyer): Plan {
  const applications: Application[] = []
  let units = noUnits(cart.lines)
  let discounts = noUnits(cart.lines)
  for (const deal of deals.toSorted(inOrder)) {
    const free = minus(
      cart.lines.map(({ quantity }) => quantity),
      units,
    )
    const application = applyDeal(deal, cart, buyer, free)
    if (!application) continue
    applications.push(application)
    units = plus(units, application.units)
    discounts = plus(discounts, application.discounts)
  }
  return {
    applications,
    units,
    discounts,
    saving: applications.reduce((sum, { saving }) => sum + saving, 0),
  }
}
