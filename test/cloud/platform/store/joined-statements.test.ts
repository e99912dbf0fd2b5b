import { expect, test } from 'vitest'
import { runsOf } from '../../../../cloud/platform/store/joined-statements.ts'

const read = 'select "id" from "orders" where "id" = $1'
const otherRead = 'select "id" from "hubs"'
const lock = 'select "id" from "orders" where "id" = $1 for no key update'
const order = 'update "orders" set "total" = $1 where "id" = $2'
const payment = 'insert into "payments" ("id") values ($1) returning "id"'
const work = 'delete from "due_work" where "kind" = $1'
const mention = 'update "hubs" set "owner_id" = (select "owner_id" from "orders" where "id" = $1)'

test.each([
  ['two reads are joined', [read, otherRead], [[read, otherRead]]],
  ['a lock stays alone', [lock, read, lock, lock], [[lock], [read], [lock], [lock]]],
  ['writes to different tables are joined', [order, payment, work], [[order, payment, work]]],
  ['a second write to the same table follows', [order, payment, order], [[order, payment], [order]]],
  ['a write that reads a written table follows', [order, mention], [[order], [mention]]],
  ['a write of a table that an earlier write reads follows', [mention, order], [[mention], [order]]],
  ['a read after a write follows', [order, read, payment], [[order], [read], [payment]]],
  [
    'another statement stays alone',
    [order, 'savepoint part', payment],
    [[order], ['savepoint part'], [payment]],
  ],
  [
    'reads of a large batch are a few statements of limited length',
    Array.from({ length: 40 }, () => read),
    [16, 16, 8].map((length) => Array.from({ length }, () => read)),
  ],
])('statements of a transaction: %s', (_, texts, runs) => {
  const parts = texts.map((text) => ({ text, values: [] }))
  expect(runsOf(parts).map((run) => run.map(({ text }) => text))).toEqual(runs)
})
