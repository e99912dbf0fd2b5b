import type { Evidence, Violation } from './evidence.ts'
import { dealsAddUp } from './deals.ts'
import { nothingBlocks, nothingReportedIsLost, stockAddsUp } from './ledgers.ts'
import { moneyAddsUp } from './money.ts'
import { nothingLeftMoving, nothingStaleMoves, oneMotionPerOperation } from './motion.ts'
import { nothingPaidIsLost } from './orders.ts'
import { walletsAddUp } from './wallets.ts'
import { analyticsAddUp } from './sales.ts'

/** The invariants (GLOSSARY), as code: all that is violated by what was found, in words. */
export function violationsOf(evidence: Evidence): Violation[] {
  return [
    oneMotionPerOperation,
    nothingStaleMoves,
    nothingPaidIsLost,
    nothingReportedIsLost,
    stockAddsUp,
    moneyAddsUp,
    dealsAddUp,
    walletsAddUp,
    analyticsAddUp,
    nothingLeftMoving,
    nothingBlocks,
  ].flatMap((check) => check(evidence))
}
