import { expect, test } from 'vitest'
import { consolePlaceOf } from '../../../protocol/model/console-places.ts'

test('a path below the console names a page, and a number only where the page has one', () => {
  const found = ['', '/', '/today', '/orders/', '/orders/17', '/hubs/2/'].map(consolePlaceOf)
  expect(found.map((one) => [one?.place, one?.id])).toEqual([
    ['today', undefined],
    ['today', undefined],
    ['today', undefined],
    ['orders', undefined],
    ['orders', 17],
    ['hubs', 2],
  ])
})

test('a path that names no page is unknown', () => {
  const paths = ['/nothing', '/sales/3', '/orders/x', '/orders/1/2', '//today', '/17', '/hubs/12345678901']
  expect(paths.map(consolePlaceOf)).toEqual(paths.map(() => undefined))
})
