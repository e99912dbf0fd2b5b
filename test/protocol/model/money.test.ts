import { expect, test } from 'vitest'
import { amountOf, amountText, localMoney, moneyText } from '../../../protocol/model/money.ts'

test('amounts are in the smallest unit of their currency, and yen have no decimals', () => {
  const texts = ['USD', 'JPY', 'KWD'].map((currency) => [
    moneyText(1378, currency),
    localMoney(1378, currency, 'en'),
  ])
  expect(texts).toEqual([
    ['13.78 USD', '$13.78'],
    ['1378 JPY', '¥1,378'],
    ['1.378 KWD', 'KWD\u00a01.378'],
  ])
})

test('a currency to which some browsers give no decimals has those of the card processor', () => {
  expect(['HUF', 'IDR', 'COP'].map((currency) => amountText(17_500, currency))).toEqual(
    Array(3).fill('175.00'),
  )
  expect(localMoney(17_500, 'HUF', 'en')).toContain('175.00')
})

test('a typed amount and its text are the same amount', () => {
  for (const currency of ['USD', 'JPY', 'KWD'])
    for (const amount of [0, 1, 29, 115, 100_001])
      expect(amountOf(amountText(amount, currency), currency)).toBe(amount)
})
