import type { Deal } from '../../../protocol/contract/deal-objects.ts'
import type { dealRoutes } from '../../../protocol/contract/deals.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { reachesHub, refuseRetired, requireHub } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { missing } from '../../platform/http/validation-items.ts'
import type { Media } from '../../platform/media/media.ts'
import { applyReward, checkEligibility } from './preview-cart.ts'
import { type DealRow, dealsOfHub, findDeal, runningDeals, type StoredDeal, toEngine } from './deal-rows.ts'
import { hubTime, isLimited, statusOf } from './engine/judge-deal.ts'
import { nobody } from './customers.ts'
import { countUses, redemptionHistory } from './redemptions.ts'
import { createDeal, deleteDeal, updateDeal } from './write-deals.ts'

/** O §4.7, deals. */
export function dealHandlers(context: CloudContext, media: Media): Handlers<keyof typeof dealRoutes> {
  const q = context.db.kysely

  /** The deals that run at a hub today and are not used up. */
  async function activeDeals(hubId: number) {
    const now = context.runtime.clock.now()
    const { day } = hubTime(await timezoneOf(hubId), now)
    const stored = (await runningDeals(q, hubId, day)).map((one) => ({ ...one, deal: toEngine(one) }))
    const limited = stored.map(({ deal }) => deal).filter(({ terms }) => isLimited(terms))
    const usesOf = await countUses(q, hubId, limited, nobody, now)
    return stored.filter(({ deal }) => statusOf(deal, day, usesOf(deal).total) === 'active')
  }

  async function timezoneOf(hubId: number): Promise<string> {
    const hub = await q
      .selectFrom('hubs')
      .select('timezone')
      .where('id', '=', hubId)
      .executeTakeFirstOrThrow()
    return hub.timezone
  }

  /** A deal at a hub that the credential reaches; of others none is found. */
  async function requireDeal(credential: OwnerCredential, dealId: number) {
    const stored = await findDeal(q, dealId)
    if (!stored) throw new ApiError('deal_not_found')
    const hub = await q
      .selectFrom('hubs')
      .select(['id', 'owner_id', 'owned_since', 'timezone', 'retired_at'])
      .where('id', '=', stored.row.hub_id)
      .executeTakeFirstOrThrow()
    if (!reachesHub(credential, hub)) throw new ApiError('deal_not_found')
    return { stored, hub }
  }

  return {
    async 'owner.deals.active'({ params }) {
      const deals = await activeDeals(params.hub_id)
      return deals.map(({ row }) => ({
        id: row.id,
        name: row.name,
        description: row.description,
        display_text: row.display_text,
        display_image: imageOf(row, media),
        priority: row.priority,
      }))
    },

    async 'owner.deals.of_hub'({ params }) {
      return (await dealsOfHub(q, params.hub_id)).map((stored) => viewDeal(stored, media))
    },

    async 'owner.deals.promo_products'({ params }) {
      const deals = await activeDeals(params.hub_id)
      const ids = deals.flatMap(({ triggers, rewards }) =>
        [...triggers, ...rewards].flatMap(({ product_id }) => product_id ?? []),
      )
      return [...new Set(ids)].sort((a, b) => a - b)
    },

    async 'owner.deals.check_eligibility'({ body, credential }) {
      const hub = await requireHub(q, credential, body.hub_id)
      return { eligible_deals: await checkEligibility(context, hub, body) }
    },

    async 'owner.deals.apply_reward'({ body, credential }) {
      const hub = await requireHub(q, credential, body.hub_id)
      return applyReward(context, hub, body)
    },

    async 'owner.deals.create'({ body, credential }) {
      const { triggers, rewards, constraints, ...fields } = body
      refuseRetired(await requireHub(q, credential, fields.hub_id))
      const stored = await createDeal(context, media, {
        fields,
        triggers: triggers.map((part, index) => ({ part, loc: ['body', 'triggers', index] })),
        rewards: rewards.map((part, index) => ({ part, loc: ['body', 'rewards', index] })),
        constraints,
        constraintsLoc: ['body', 'constraints'],
        imageKey: null,
        actor: credential.actor,
      })
      return viewDeal(stored, media)
    },

    async 'owner.deals.create_from_owner'({ form, credential }) {
      const { deal: fields, trigger, reward, constraints } = form.fields.dealData
      refuseRetired(await requireHub(q, credential, fields.hub_id))
      const [image] = form.files
      if (!image && context.settings.dealImageRequired)
        throw ApiError.invalid({ loc: ['body', 'file'], ...missing })
      const { row } = await createDeal(context, media, {
        fields,
        triggers: [{ part: trigger, loc: ['body', 'dealData', 'trigger'] }],
        rewards: [{ part: reward, loc: ['body', 'dealData', 'reward'] }],
        constraints,
        constraintsLoc: ['body', 'dealData', 'constraints'],
        imageKey: image?.key ?? null,
        actor: credential.actor,
      })
      return {
        id: row.id,
        name: row.name,
        is_deal_active: row.is_active === 1,
        display_image: imageOf(row, media),
      }
    },

    async 'owner.deals.get'({ params, credential }) {
      const { stored } = await requireDeal(credential, params.deal_id)
      return viewDeal(stored, media)
    },

    async 'owner.deals.update'({ params, body, credential }) {
      refuseRetired((await requireDeal(credential, params.deal_id)).hub)
      return viewDeal(await updateDeal(context, params.deal_id, body, credential.actor), media)
    },

    async 'owner.deals.delete'({ params, credential }) {
      refuseRetired((await requireDeal(credential, params.deal_id)).hub)
      await deleteDeal(context, media, params.deal_id, credential.actor)
      return { success: true, message: 'The deal was deleted.' }
    },

    async 'owner.deals.redemptions'({ params, query, credential }) {
      const { stored, hub } = await requireDeal(credential, params.deal_id)
      return redemptionHistory(context, stored, hub, query)
    },
  }
}

type Addresses = Pick<Media, 'addressOf'>

const imageOf = ({ image_key }: DealRow, media: Addresses): string | null =>
  image_key === null ? null : media.addressOf(image_key)

/** A deal as its owner sees it (O §2). */
const viewDeal = ({ row, triggers, rewards, constraints }: StoredDeal, media: Addresses): Deal => ({
  id: row.id,
  name: row.name,
  description: row.description,
  display_text: row.display_text,
  display_image: imageOf(row, media),
  priority: row.priority,
  is_deal_active: row.is_active === 1,
  start: row.start_day,
  end: row.end_day,
  triggers: triggers.map(({ id, type, quantity, category, category_id, product_id }) => ({
    id,
    type,
    quantity,
    category,
    category_id,
    product_id,
  })),
  rewards: rewards.map(({ id, type, quantity, product_id, discount_pct_or_price }) => ({
    id,
    type,
    quantity,
    product_id,
    discount_pct_or_price,
  })),
  constraints: constraints.map(({ id, type, value }) => ({ id, type, value })),
})
