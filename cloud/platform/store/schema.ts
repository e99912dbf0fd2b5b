import { createStatements, type DatabaseKind, type RowOf, type Table } from './table.ts'
import { alarmTables } from './tables/alarms.ts'
import { analyticsTables } from './tables/analytics.ts'
import { catalogueTables } from './tables/catalogue.ts'
import { credentialTables } from './tables/credentials.ts'
import { dealTables } from './tables/deals.ts'
import { eventTables } from './tables/events.ts'
import { gatewayTables } from './tables/gateway.ts'
import { hubTables } from './tables/hubs.ts'
import { mediaTables } from './tables/media.ts'
import { moneyTables } from './tables/money.ts'
import { orderTables } from './tables/orders.ts'
import { paymentTables } from './tables/payments.ts'
import { peopleTables } from './tables/people.ts'
import { processorTables, sandboxTables } from './tables/processors.ts'
import { ledgerTables } from './tables/ledger.ts'
import { workTables } from './tables/work.ts'

/**
 * Every table, each after the tables that it refers to. Conventions:
 * - An instant is in milliseconds since the Unix epoch.
 * - Money is in integer cents.
 * - A flag is 0 or 1.
 * - JSON is text that its owner parses with a schema.
 */
export const tables = {
  ...hubTables,
  ...credentialTables,
  ...peopleTables,
  ...catalogueTables,
  ...orderTables,
  ...paymentTables,
  ...moneyTables,
  ...ledgerTables,
  ...processorTables,
  ...sandboxTables,
  ...dealTables,
  ...eventTables,
  ...alarmTables,
  ...gatewayTables,
  ...mediaTables,
  ...analyticsTables,
  ...workTables,
}

/** The tables as Kysely types; the same on SQLite and PostgreSQL. */
export type Tables = { [T in keyof typeof tables]: RowOf<(typeof tables)[T]> }

/** The statements that create the whole schema. */
export const schemaStatements = (
  kind: DatabaseKind,
  declared: Readonly<Record<string, Table>> = tables,
): string[] => Object.entries(declared).flatMap(([name, table]) => createStatements(name, table, kind))
