import { z } from 'zod'
import { nameText } from '../model/name-text.ts'
import { Id, HubId, ImageUrl, Success, Message } from './fields.ts'
import { picture, type Form } from './form.ts'
import { defineRoutes } from './route.ts'

/** O §2. */
export const Banner = z
  .object({
    id: Id.describe('Number of the banner.'),
    name: z.string().describe('Name of the banner.'),
    image_url: ImageUrl,
    order_by: z.int().describe('Display position, lowest first.'),
  })
  .meta({ id: 'Banner', description: 'A picture that a hub shows.' })
export type Banner = z.infer<typeof Banner>

const bannerForm = {
  fields: z.object({
    name: nameText(200).describe('Name of the banner.'),
    order_by: z.int().min(0).max(1_000_000).describe('Display position, lowest first.'),
  }),
  files: { file: picture },
  folder: 'banners',
} as const satisfies Form

const shared = {
  interface: 'owner',
  auth: { kind: 'api', scope: 'promotions:write' },
  rate: 'low',
  query: z.object({ hub_id: HubId }),
  hub: 'hub_id',
  tag: 'Banners',
} as const

/** O §4.7. */
export const ownerBannerRoutes = defineRoutes(shared, {
  'owner.banners.list': {
    at: 'GET /owners/owner/banners',
    auth: { kind: 'api', scope: 'promotions:read' },
    rate: 'standard',
    response: z.array(Banner),
    summary: 'List a hub’s banners by display position',
    description: '`image_url` expires: list the banners again for a new one.',
  },
  'owner.banners.create': {
    at: 'POST /owners/owner/banners',
    idempotent: true,
    form: bannerForm,
    response: Banner,
    summary: 'Add a banner',
    description:
      'The image is png, jpeg, webp or gif by its content and has at most 5 MiB. A hub has at most 100 banners; a further one is 422 `validation_error`.',
    examples: { body: { name: 'Spring', order_by: 1 } },
  },
  'owner.banners.delete': {
    at: 'DELETE /owners/owner/banners/{banner_id}',
    params: z.object({ banner_id: Id.describe('Number of the banner.') }),
    response: z.object({ success: Success, message: Message }),
    errors: ['banner_not_found'],
    summary: 'Remove a banner and its image',
    description: 'The image is deleted with the banner.',
  },
})
