import { consolePlaceOf } from '../protocol/model/console-places.ts'
import type { CloudContext } from './platform/context.ts'
import type { PageOptions } from './platform/http/page.ts'
import { isHub, policyWithPictures } from './shop-page.ts'

/** The owner's console. The page of an unknown hub has status 404; orders are private, so the page itself asks for them. */
export const consolePage = (context: CloudContext): PageOptions => ({
  policy: policyWithPictures,
  async exists(path) {
    const found = consolePlaceOf(`/${path}`)
    if (!found) return false
    const { place, id } = found
    return id === undefined || place === 'orders' || isHub(context, id)
  },
})
