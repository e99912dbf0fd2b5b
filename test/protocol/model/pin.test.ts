import { expect, test } from 'vitest'
import { isPinOf, pinDigestOf } from '../../../protocol/model/pin.ts'
import { virtualRuntime } from '../../world/clock.ts'

const answers = async (digest: string) => [await isPinOf(digest, '271828'), await isPinOf(digest, '271829')]

test('a digest contains the cost of its check, and only its PIN matches', async () => {
  const digest = await pinDigestOf('271828', virtualRuntime().random)
  expect(digest).toMatch(/^[0-9a-f]{32}\.[0-9a-f]{64}\.15\.2$/)
  expect(await answers(digest)).toEqual([true, false])
})

test('a digest of the first version, which has no cost, is still read', async () => {
  const hash = 'ca2c0e4b30cdb17ff7df9c8047ce5282c3a1b15076dea049f764d3acb2f09a51'
  expect(await answers(`${'0'.repeat(32)}.${hash}`)).toEqual([true, false])
})

test('a digest with another cost matches no PIN, and its check does not pay that cost', async () => {
  const [salt, hash] = (await pinDigestOf('271828', virtualRuntime().random)).split('.')
  expect(await answers(`${salt}.${hash}.15.48000`)).toEqual([false, false])
  expect(await answers(`${salt}.${hash}.0.1`)).toEqual([false, false])
})
