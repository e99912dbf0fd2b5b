import type { Deal } from '../../../protocol/contract/deal-objects.ts'
import type { dealRoutes } from '../../../protocol/contract/deals.ts'
import type { Routes } from '../../../protocol/contract/routes.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { reachesHub, refuseRetired, requireHub } from '../../platform/credentials/hub-access.ts'
import type { HandlerInput, Handlers } from '../../platform/http/handler.ts'
import { missing } from '../../platform/http/validation-items.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { Media } from '../../platform/media/media.ts'
import { applyReward, checkEligibility } from './preview-cart.ts'
import { type DealRow, dealsOfHub, findDeal, runningDeals, type StoredDeal, toEngine } from './deal-rows.ts'
import { hubTime, isLimited, statusOf } from './engine/judge-deal.ts'
import { nobody } from './customers.ts'
import { countUses, redemptionHistory } from './redemptions.ts'
import { createDeal, dealOf, deleteDeal, updateDeal } from './write-deals.ts'

/** O §4.7, deals. */
export function dealHandlers(context: CloudContext, media: Media): Handlers<keyof typeof dealRoutes> {
  const q = context.db.kysely
  /** For changes: refuses a deal of a retired hub. */
  const requireOpenDeal = async (credential: OwnerCredential, dealId: number): Promise<void> =>
    refuseRetired((await requireDeal(q, credential, dealId)).hub)
  return {
    async 'owner.deals.active'({ params }) {
      const deals = await activeDeals(context, params.hub_id)
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
      const deals = await activeDeals(context, params.hub_id)
      const parts = deals.flatMap(({ triggers, rewards }) => [...triggers, ...rewards])
      return [...new Set(parts.flatMap(({ product_id }) => product_id ?? []))].sort((a, b) => a - b)
    },
    async 'owner.deals.check_eligibility'({ body, credential }) {
      const hub = await requireHub(q, credential, body.hub_id)
      return { eligible_deals: await checkEligibility(context, hub, body) }
    },
    'owner.deals.apply_reward': async ({ body, credential }) =>
      applyReward(context, await requireHub(q, credential, body.hub_id), body),
    'owner.deals.create': async (input) => viewDeal(await createFromJson(context, media, input), media),
    async 'owner.deals.create_from_owner'(input) {
      const { row } = await createFromForm(context, media, input)
      return {
        id: row.id,
        name: row.name,
        is_deal_active: row.is_active === 1,
        display_image: imageOf(row, media),
      }
    },
    'owner.deals.get': async ({ params, credential }) =>
      viewDeal((await requireDeal(q, credential, params.deal_id)).stored, media),
    async 'owner.deals.update'({ params, body, credential }) {
      await requireOpenDeal(credential, params.deal_id)
      return viewDeal(await updateDeal(context, params.deal_id, body, credential.actor), media)
    },
    async 'owner.deals.delete'({ params, credential }) {
      await requireOpenDeal(credential, params.deal_id)
      await deleteDeal(context, media, params.deal_id, credential.actor)
      return { success: true, message: 'The deal was deleted.' }
    },
    async 'owner.deals.redemptions'({ params, query, credential }) {
      const { stored, hub } = await requireDeal(q, credential, params.deal_id)
      return redemptionHistory(context, stored, hub, query)
    },
  }
}

async function createFromJson(
  context: CloudContext,
  media: Media,
  { body, credential }: HandlerInput<Routes['owner.deals.create']>,
): Promise<StoredDeal> {
  refuseRetired(await requireHub(context.db.kysely, credential, body.hub_id))
  return createDeal(context, media, dealOf(body, credential.actor))
}

/** A form has one trigger, one reward and an image. */
async function createFromForm(
  context: CloudContext,
  media: Media,
  { form, credential }: HandlerInput<Routes['owner.deals.create_from_owner']>,
): Promise<StoredDeal> {
  const { deal: fields, trigger, reward, constraints } = form.fields.dealData
  refuseRetired(await requireHub(context.db.kysely, credential, fields.hub_id))
  const [image] = form.files
  if (!image && context.settings.dealImageRequired)
    throw ApiError.invalid({ loc: ['body', 'file'], ...missing })
  return createDeal(context, media, {
    fields,
    triggers: [{ part: trigger, loc: ['body', 'dealData', 'trigger'] }],
    rewards: [{ part: reward, loc: ['body', 'dealData', 'reward'] }],
    constraints,
    constraintsLoc: ['body', 'dealData', 'constraints'],
    imageKey: image?.key ?? null,
    actor: credential.actor,
  })
}

/** The deals that run at a hub today and are not used up. */
async function activeDeals({ db, runtime }: CloudContext, hubId: number) {
  const now = runtime.clock.now()
  const { timezone } = await db.kysely
    .selectFrom('hubs')
    .select('timezone')
    .where('id', '=', hubId)
    .executeTakeFirstOrThrow()
  const { day } = hubTime(timezone, now)
  const stored = (await runningDeals(db.kysely, hubId, day)).map((one) => ({ ...one, deal: toEngine(one) }))
  const limited = stored.map(({ deal }) => deal).filter(({ terms }) => isLimited(terms))
  const usesOf = await countUses(db.kysely, hubId, limited, nobody, now)
  return stored.filter(({ deal }) => statusOf(deal, day, usesOf(deal).total) === 'active')
}

/** A deal of a hub that the credential may access; 404 for any other. */
async function requireDeal(q: Queries, credential: OwnerCredential, dealId: number) {
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

type Addresses = Pick<Media, 'addressOf'>

const imageOf = ({ image_key }: DealRow, media: Addresses): string | null =>
  image_key === null ? null : media.addressOf(image_key)

/** A deal in the owner's form (O §2). */
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
