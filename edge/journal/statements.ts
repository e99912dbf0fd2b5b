import type { Statement } from 'better-sqlite3'
import type { Kept } from './store.ts'

/** A prepared statement as a function of its parameters that returns the first row. */
export const one =
  <P extends unknown[], Row>(statement: Statement<P, Row>) =>
  (...parameters: P): Row | undefined =>
    statement.get(...parameters)

/** As a function that returns all rows. */
export const all =
  <P extends unknown[], Row>(statement: Statement<P, Row>) =>
  (...parameters: P): Row[] =>
    statement.all(...parameters)

/** As a function that returns the first column of the first row. */
export const value = <P extends unknown[], Value>(statement: Statement<P, Value>) => one(statement.pluck())

/** As a function that returns the first column of all rows. */
export const values = <P extends unknown[], Value>(statement: Statement<P, Value>) => all(statement.pluck())

/** As a function that returns how many rows it changed. */
export const run =
  <P extends unknown[]>(statement: Statement<P>) =>
  (...parameters: P): number =>
    statement.run(...parameters).changes

/** As `run`, of statements that change what is kept. */
export const writer =
  (...kept: readonly Pick<Kept<[], unknown>, 'forget'>[]) =>
  <P extends unknown[]>(statement: Statement<P>) =>
  (...parameters: P): number => {
    for (const each of kept) each.forget()
    return statement.run(...parameters).changes
  }

/** As `run`, of statements that change what is kept of one key: that which `keyOf` finds in the parameters. */
export const writerOf =
  <Key, P extends unknown[]>(
    kept: Pick<Kept<[key: Key], unknown>, 'forget'>,
    keyOf: (...parameters: P) => Key,
  ) =>
  (statement: Statement<P>) =>
  (...parameters: P): number => {
    kept.forget(keyOf(...parameters))
    return statement.run(...parameters).changes
  }
