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

/** Pictures of products may have addresses of their owner's. */
const pictures = (directive: string): string =>
  directive.startsWith('img-src') ? `${directive} https:` : directive

function policyFor({ name }: Pick<CardProcessor, 'name'>): string {
  const own = pagePolicy.split('; ').map(pictures)
  if (name !== 'stripe') return own.join('; ')
  const added = (directive: string): string => STRIPE[directive.split(' ')[0]!] ?? ''
  return [...own.map((directive) => `${directive} ${added(directive)}`.trim()), STRIPE_FRAMES].join('; ')
}

/** The customer's shop: `/shop/{hub}` and `/shop/{hub}/orders/{id}`. */
export const shopPage = ({ db }: CloudContext, processor: Pick<CardProcessor, 'name'>): PageOptions => ({
  policy: policyFor(processor),
  async exists(path) {
    const [, hub] = /^(\d{1,10})(?:\/orders\/\d{1,10})?\/?$/.exec(path) ?? []
    if (hub === undefined) return false
    const found = db.kysely.selectFrom('hubs').select('id').where('id', '=', Number(hub))
    return (await found.executeTakeFirst()) !== undefined
  },
})
