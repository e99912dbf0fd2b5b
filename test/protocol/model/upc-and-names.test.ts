import { expect, test } from 'vitest'
import { ProductFile } from '../../../cloud/commerce/catalogue/import-products.ts'
import { NewHub } from '../../../cloud/operations/hubs/create-hub.ts'
import { routes } from '../../../protocol/contract/routes.ts'
import { PersonName } from '../../../protocol/contract/fields.ts'
import { normalName } from '../../../protocol/model/name-text.ts'
import { normalUpc, upcDigits } from '../../../protocol/model/upc.ts'

const product = {
  upc: '036000291452',
  name: 'Crème',
  category: 'Sweets',
  price: 100,
  purchase_price: 50,
  facings: [{ cabinet: 1, shelf: 1, row: 1 }],
}
const imported = (entry: object) => ProductFile.parse([{ ...product, ...entry }])[0]!

const body = routes['owner.inventory.update_upc'].body

test.each([
  ['036000291452'],
  ['0036000291452'],
  ['00036000291452'],
  ['0 36000 29145 2'],
  ['0-36000-29145-2'],
  [' 036000291452 '],
])('the UPC %j is stored as 036000291452 by the body of a request and by an import', (upc) => {
  expect(body.parse({ upc })).toEqual({ upc: '036000291452' })
  expect(imported({ upc })).toMatchObject({ upc: '036000291452' })
})

test.each([
  ['036000291453', 'wrong check digit'],
  ['4006381333931', 'an EAN-13 of another country'],
  ['123', 'too short'],
  ['36000291452', 'a leading zero is missing'],
  ['0360002914520', '13 digits without a leading zero to spare'],
  ['', 'empty'],
  ['03600029145x', 'a letter'],
  ['036000291452036000291452', 'two leading zeros'],
])('the text %j is not a UPC, neither in a body nor in a file: %s', (upc) => {
  expect(body.safeParse({ upc }).success).toBe(false)
  expect(ProductFile.safeParse([{ ...product, upc }]).success).toBe(false)
  expect(normalUpc(upc)).toBe(upc)
})

test('two forms of a UPC in one file are the same product', () => {
  const { success, error } = ProductFile.safeParse([
    product,
    { ...product, upc: '0036000291452', facings: [{ cabinet: 1, shelf: 1, row: 2 }] },
  ])
  expect([success, error?.issues[0]?.message]).toEqual([false, 'UPC 036000291452 is there twice'])
})

test('a lookup by UPC needs no check digit and no leading zeros', () => {
  expect(upcDigits('36000291452')).toBe('036000291452')
  expect(upcDigits('1')).toBe('000000000001')
  expect(upcDigits('0 36000 29145 2')).toBe('036000291452')
  expect(upcDigits('4006381333931')).toBeUndefined()
  expect(upcDigits('a')).toBeUndefined()
})

/** One name in every form that people, phones and spreadsheets write. */
const forms = [
  'Crème Brûlée',
  'Cre\u0300me Bru\u0302le\u0301e',
  '  Crème   Brûlée\t',
  'Crème\u00A0Brûlée',
  'Crème\nBrûlée',
  '\u200BCrème Brûlée\uFEFF',
  '\u202ECrème Brûlée\u202C',
  '\u001BCrème \u009BBrûlée\u0007',
]

test.each(forms)('the name %j is stored in one form for every way of typing it', (form) => {
  const [name] = forms as [string]
  expect(normalName(form)).toBe(name)
  expect(PersonName.parse(form)).toBe(name)
  expect(imported({ name: form, category: form })).toMatchObject({ name, category: name })
  const hub = {
    street: form,
    city: form,
    state: 'IL',
    postalCode: '1',
    longitude: '0',
    latitude: '0',
    timezone: 'UTC',
  }
  expect(NewHub.parse({ ...hub, name: form })).toMatchObject({ name, city: name, street: name })
})

test('a name keeps the marks of its script, and joined emoji', () => {
  for (const name of ['می\u200Cخواهم', '👩\u200D🍳', 'O’Neill', 'नमस्\u200Dते'])
    expect(normalName(name)).toBe(name)
})

test('a name without a visible character is refused', () => {
  for (const name of ['', ' ', '\u200B', '\n\t', '\u00A0', '\u001B', '\u0000'])
    expect(PersonName.safeParse(name).success).toBe(false)
})
