import { expect, test } from 'vitest'
import { rowsOf } from '../../../cloud/console/page/csv.ts'
import { changesOf, type TablePlace } from '../../../cloud/console/page/table-changes.ts'

const water: TablePlace = {
  cabinet: 1,
  shelf: 1,
  row: 1,
  product_id: 1,
  upc: '049000000443',
  name: 'Water',
  quantity: 5,
  price: 200,
  purchase_price: 90,
  currency: 'USD',
}
const otherWater = { ...water, row: 2, product_id: 2, upc: '049000000450' }
const changes = (places: TablePlace[], table: string) =>
  changesOf(places, rowsOf(table)).map(({ what, value, place }) => `${what} ${place.row}: ${value}`)

test('an imported table changes the prices of two products with one name', () => {
  const table = 'cabinet,shelf,row,price,purchase_price\n1,1,1,250,100\n1,1,2,250,100\n'
  expect(changes([water, otherWater], table)).toEqual([
    'price 1: 250',
    'purchase_price 1: 100',
    'price 2: 250',
    'purchase_price 2: 100',
  ])
  const texts = changesOf([water, otherWater], rowsOf(table)).map(({ text }) => text)
  expect(new Set(texts).size).toBe(4)
})

test('a product with two rows gets one price, and both counts', () => {
  const secondRow = { ...water, row: 2 }
  const table = 'cabinet;shelf;row;quantity;price\n1;1;1;9;250\n1;1;2;9;250\n'
  expect(changes([water, secondRow], table)).toEqual(['quantity 1: 9', 'price 1: 250', 'quantity 2: 9'])
})

test('a table with two prices for one product is refused', () => {
  const table = 'cabinet,shelf,row,price\n1,1,1,250\n1,1,2,260\n'
  expect(() => changes([water, { ...water, row: 2 }], table)).toThrow('Line 3')
})

test.each([
  ['1,1,1,Water 12" bottle,250\r\n1,1,2,Cola,250\r\n', 'Line 2'],
  ['1,1,1,"Water",250\r\n1,1,2,"Cola,250\r\n', 'Line 3'],
  ['1,1,1,"Water" still,250\r\n', 'Line 2'],
])('a broken line of an imported table is refused with its number: %j', (lines, expected) => {
  expect(() => rowsOf(`cabinet,shelf,row,name,price\r\n${lines}`)).toThrow(expected)
})

test.each(['', '\n', '\r\n\r\n', ','])('an imported table may end with %j', (end) => {
  const rows = rowsOf(`\uFEFFcabinet,name,price\n1,"12"" bottle, ""Water""",250${end}`)
  expect(rows).toEqual([{ cabinet: '1', name: '12" bottle, "Water"', price: '250' }])
})
