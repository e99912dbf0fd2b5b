import { pagePolicy } from '../protocol/page-assets.ts'
import type { CardProcessor } from './commerce/processors/processor.ts'
import type { CloudContext } from './platform/context.ts'
import type { PageOptions } from './platform/http/page.ts'

/** Stripe's form for cards is a frame with a script of Stripe's (docs.stripe.com/security/guide). */
const STRIPE: Readonly<Record<string, string>> = {
  'script-src': 'https://js.stripe.com',
  'connect-src': 'https://api.stripe.com',
}
const STRIPE_FRAMES = 'frame-src https://js.stripe.com https://hooks.stripe.com'

const own = pagePolicy
  .split('; ')
  .map((directive) => (directive.startsWith('img-src') ? `${directive} https:` : directive))
/** The policy of a page that shows products: their pictures may have addresses of the owner's. */
export const policyWithPictures = own.join('; ')

export const isHub = async ({ db }: Pick<CloudContext, 'db'>, id: number): Promise<boolean> =>
  (await db.kysely.selectFrom('hubs').select('id').where('id', '=', id).executeTakeFirst()) !== undefined

function policyFor({ name }: Pick<CardProcessor, 'name'>): string {
  if (name !== 'stripe') return policyWithPictures
  const added = (directive: string): string => STRIPE[directive.split(' ')[0]!] ?? ''
  return [...own.map((directive) => `${directive} ${added(directive)}`.trim()), STRIPE_FRAMES].join('; ')
}

/** The customer's shop: `/shop/{hub}` and `/shop/{hub}/orders/{id}`. */
export const shopPage = (context: CloudContext, processor: Pick<CardProcessor, 'name'>): PageOptions => ({
  policy: policyFor(processor),
  async exists(path) {
    const [, hub] = /^(\d{1,10})(?:\/orders\/\d{1,10})?\/?$/.exec(path) ?? []
    return hub !== undefined && isHub(context, Number(hub))
  },
  /** The code at the door of a hub names its former cell. Orders stay there. */
  async movedTo(path) {
    const [, hub] = /^(\d{1,10})\/?$/.exec(path) ?? []
    if (hub === undefined) return undefined
    const next = await context.db.kysely
      .selectFrom('hub_moves')
      .select(['cloud', 'next_id'])
      .where('hub_id', '=', Number(hub))
      .where('moved_at', 'is not', null)
      .executeTakeFirst()
    return next && `${next.cloud}/shop/${next.next_id}`
  },
})
