import type { CloudDatabase } from '../../../../../cloud/platform/store/database.ts'
import { collectCloud } from '../../../../invariants/collect-cloud.ts'
import type { Evidence } from '../../../../invariants/evidence.ts'
import { analyticsAddUp } from '../../../../invariants/sales.ts'

/** Differences between the summaries of hub 1 and a recount of its books, in words. */
export async function differences({ kysely }: CloudDatabase): Promise<string[]> {
  const evidence = { cloud: await collectCloud(kysely, 1) } as Evidence
  return analyticsAddUp(evidence).map(({ text }) => text)
}
