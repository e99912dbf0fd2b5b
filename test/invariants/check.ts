import type { Evidence, Violation } from './evidence.ts'
import { openProblemsAreAlarms } from './alarms.ts'
import { dealsAddUp } from './deals.ts'
import { goodsStayApart, nothingUnprovenIsSold } from './goods.ts'
import { nothingBlocks, nothingReportedIsLost, stockAddsUp } from './ledgers.ts'
import { changesArePublishedOnce } from './events.ts'
import { moneyAddsUp } from './money.ts'
import { nothingLeftMoving, nothingStaleMoves, oneMotionPerOperation } from './motion.ts'
import { nothingPaidIsLost } from './orders.ts'
import {
  everyOrderEndsInTime,
  noRowWaitsForEver,
  nothingBlockedIsSold,
  refundedUnitsStay,
} from './watched.ts'
import { walletsAddUp } from './wallets.ts'
import { analyticsAddUp } from './sales.ts'

/** Checks the invariants (GLOSSARY) on the evidence. Returns all violations, in words. */
export function violationsOf(evidence: Evidence): Violation[] {
  return [
    oneMotionPerOperation,
    nothingStaleMoves,
    nothingPaidIsLost,
    goodsStayApart,
    nothingUnprovenIsSold,
    nothingReportedIsLost,
    stockAddsUp,
    moneyAddsUp,
    dealsAddUp,
    walletsAddUp,
    analyticsAddUp,
    nothingLeftMoving,
    nothingBlocks,
    everyOrderEndsInTime,
    noRowWaitsForEver,
    nothingBlockedIsSold,
    refundedUnitsStay,
    changesArePublishedOnce,
    openProblemsAreAlarms,
  ]
    .flatMap((check) => check(evidence))
    .filter(({ invariant }) => !(invariant in notYetHeld))
}

/** Invariants that cannot hold yet, with the reason. It should be empty. */
const notYetHeld: Partial<Record<Violation['invariant'], string>> = {}
