import { expect } from 'vitest'
import { SalesOverview } from '../../../../../protocol/contract/owner-analytics.ts'
import type { TestCloud } from '../../../../world/cloud.ts'

/**
 * The service's answers, by the paths of `expected`. The bounds of periods are left out: they have their own
 * test.
 */
export async function answers({ call, key }: TestCloud, expected: Record<string, unknown>) {
  const credential = { key: await key(['analytics:read']) }
  const found: Record<string, unknown> = {}
  for (const path of Object.keys(expected)) {
    const { status, json } = await call('GET', `/api/v1/owners/${path}`, credential)
    expect([path, status]).toEqual([path, 200])
    found[path] = path.startsWith('get_sales_overview') ? withoutBounds(SalesOverview.parse(json)) : json
  }
  return found
}

function withoutBounds(overview: SalesOverview): unknown {
  const bare = ({ period_start: _start, period_end: _end, ...figures }: SalesOverview['daily']) => figures
  const { daily, weekly, monthly, yearly } = overview
  return {
    ...overview,
    daily: bare(daily),
    weekly: bare(weekly),
    monthly: bare(monthly),
    yearly: bare(yearly),
  }
}
