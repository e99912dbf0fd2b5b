import { analytics } from './0008-analytics.ts'
import { catalogue } from './0002-catalogue.ts'
import { deals } from './0009-deals.ts'
import { gateway } from './0005-gateway.ts'
import { hubs } from './0001-hubs.ts'
import { hubConfiguration } from './0007-hub-configuration.ts'
import { management } from './0015-management.ts'
import { media } from './0010-media.ts'
import { orders } from './0003-orders.ts'
import { payments } from './0004-payments.ts'
import { paymentMethods } from './0013-payment-methods.ts'
import { people } from './0012-people.ts'
import { rateLimits } from './0006-rate-limits.ts'
import { tasks } from './0014-tasks.ts'
import { wallet } from './0011-wallet.ts'
import type { CloudMigration } from './migration.ts'

/** Every migration, in the order in which they are applied. */
export const cloudMigrations: readonly CloudMigration[] = [
  hubs,
  catalogue,
  orders,
  payments,
  gateway,
  rateLimits,
  hubConfiguration,
  media,
  analytics,
  deals,
  wallet,
  people,
  paymentMethods,
  tasks,
  management,
]
