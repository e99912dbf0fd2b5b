import type { AnalyticsTables } from './tables/analytics-tables.ts'
import type { CatalogueTables } from './tables/catalogue-tables.ts'
import type { CredentialTables } from './tables/credential-tables.ts'
import type { DealTables } from './tables/deal-tables.ts'
import type { GatewayTables } from './tables/gateway-tables.ts'
import type { HubTables } from './tables/hub-tables.ts'
import type { ManagementTables } from './tables/management-tables.ts'
import type { MediaTables } from './tables/media-tables.ts'
import type { OrderTables } from './tables/order-tables.ts'
import type { PaymentMethodTables } from './tables/payment-method-tables.ts'
import type { PaymentTables } from './tables/payment-tables.ts'
import type { PeopleTables } from './tables/people-tables.ts'
import type { SandboxTables } from './tables/sandbox-tables.ts'
import type { TaskTables } from './tables/task-tables.ts'
import type { WalletTables } from './tables/wallet-tables.ts'

/**
 * The tables, as Kysely sees them; the same on SQLite and PostgreSQL. Conventions: instants are milliseconds since the
 * Unix epoch, money is integer cents, flags are 0 or 1, JSON is text that its owner parses with a schema.
 */
export type Tables = AnalyticsTables &
  CatalogueTables &
  CredentialTables &
  DealTables &
  GatewayTables &
  HubTables &
  ManagementTables &
  MediaTables &
  OrderTables &
  PaymentMethodTables &
  PaymentTables &
  PeopleTables &
  SandboxTables &
  TaskTables &
  WalletTables
