import { decodeQR } from 'qr/decode.js'
import { expect, test } from 'vitest'
import { hubLogin } from '../../../simulator/console/hub-login.ts'

test('the QR code is the link to the hub’s own page, with the token behind the hash', () => {
  const { link, code } = hubLogin(
    'https://hub1.local:8081/',
    '0123456789abcdef0123456789abcdef0123456789abcdef',
  )
  expect(link).toBe('https://hub1.local:8081/#token=0123456789abcdef0123456789abcdef0123456789abcdef')
  const scale = 4
  const side = code.length * scale
  const data = Uint8Array.from({ length: side * side * 4 }, (_, index) => {
    const pixel = Math.floor(index / 4)
    const [x, y] = [Math.floor((pixel % side) / scale), Math.floor(pixel / side / scale)]
    return index % 4 === 3 || code[y]![x] === '0' ? 255 : 0
  })
  expect(decodeQR({ width: side, height: side, data })).toBe(link)
})
