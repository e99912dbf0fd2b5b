import type { WorkKinds } from '../platform/work/runner.ts'
import { salesWork } from './analytics/rebuild.ts'
import { bestsellerWork } from './catalogue/bestsellers.ts'
import { searchNameWork } from './catalogue/search-names.ts'
import { redemptionWork } from './deals/redemptions.ts'
import { overdueWork } from './fulfilment/overdue.ts'
import { customers } from './methods/customers.ts'
import { methods } from './methods/methods.ts'
import { moneyWork } from './money/operations.ts'
import { deadlineWork } from './orders/move-order.ts'
import { checkWork } from './payments/check-moves.ts'
import { orphans } from './payments/orphaned-payments.ts'
import { payments } from './payments/payment.ts'
import { externalRefundWork } from './payments/processor-moves.ts'
import { refunds } from './refunds/execute-refund.ts'
import type { MoneyServices } from './services.ts'
import { deposits } from './ledger/deposit.ts'

/** All due work of commerce. */
export const commerceWork = (services: MoneyServices): WorkKinds => ({
  ...deadlineWork(services.context),
  ...overdueWork(services.context),
  ...externalRefundWork(services),
  ...checkWork(services),
  ...moneyWork(services, [payments, deposits, refunds, methods, customers, orphans]),
  ...redemptionWork(services.context),
  ...bestsellerWork(services.context),
  ...salesWork(services.context),
  ...searchNameWork(services.context),
})
