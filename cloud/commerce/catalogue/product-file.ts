import { z } from 'zod'
import { Location, locationKey } from '../../../protocol/model/location.ts'
import { isUpc } from '../../../protocol/model/upc.ts'

const Cents = z.int().min(0).max(100_000_000)
const Name = z.string().trim().min(1).max(200)

const ProductEntry = z
  .strictObject({
    upc: z.string().refine(isUpc, 'must be 12 digits, of which the last checks the others'),
    name: Name,
    description: z.string().max(2000).nullable().default(null),
    category: Name,
    subcategory: Name.nullable().default(null),
    /** Cents. */
    price: Cents,
    purchase_price: Cents,
    /** The product's own markdown in percent. */
    markdown_percent: z.int().min(0).max(99).default(0),
    /** Where its image is: elsewhere. */
    image_url: z
      .union([z.literal(''), z.httpUrl().max(500).startsWith('https://')], 'must be an https:// address')
      .default(''),
    is_active: z.boolean().default(true),
    /** Where it stands; the first place is its primary one. */
    facings: z.array(Location).max(40).default([]),
    /** What was counted there, all places together; left out, the stock stays what it is. */
    quantity: z.int().min(0).max(1_000_000).optional(),
  })
  .superRefine(({ is_active, facings, quantity }, ctx) => {
    if (is_active && facings.length === 0)
      ctx.addIssue({ code: 'custom', path: ['facings'], message: 'an active product stands somewhere' })
    if (quantity !== undefined && facings.length === 0)
      ctx.addIssue({ code: 'custom', path: ['quantity'], message: 'what stands nowhere is not counted' })
  })
export type ProductEntry = z.infer<typeof ProductEntry>

/** What a hub sells and where it stands, as an operator writes it: a product is known by its UPC. */
export const ProductFile = z
  .array(ProductEntry)
  .min(1)
  .max(5000)
  .superRefine((products, ctx) => {
    const upcs = new Set<string>()
    const places = new Map<string, string>()
    for (const [index, { upc, facings }] of products.entries()) {
      if (upcs.has(upc)) ctx.addIssue({ code: 'custom', path: [index], message: `UPC ${upc} is there twice` })
      upcs.add(upc)
      for (const facing of facings) {
        const key = locationKey(facing)
        const other = places.get(key)
        if (other !== undefined)
          ctx.addIssue({
            code: 'custom',
            path: [index],
            message: `${key} is taken by ${other} and by ${upc}`,
          })
        places.set(key, upc)
      }
    }
  })
