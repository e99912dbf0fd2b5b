import { createRequire } from 'node:module'
import type BetterSqlite3 from 'better-sqlite3'

const require = createRequire(import.meta.url)

/**
 * better-sqlite3, in the version that works with this Node. Version 13 needs Node-API 10, which Node 20 does
 * not have. Version 12 aborts on Node 24.19 and later, when a statement is garbage-collected while no script
 * runs (its `ObjectWrap` is Node's own).
 */
export const Sqlite = (
  Number(process.versions.napi) >= 10 ? require('better-sqlite3') : require('better-sqlite3-node20')
) as typeof BetterSqlite3
