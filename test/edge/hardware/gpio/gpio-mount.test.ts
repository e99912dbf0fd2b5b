import { expect, test } from 'vitest'
import { GpioMountText } from '../../../../edge/hardware/gpio/gpio-mount.ts'

test('the setting is sysfs or an address, and nothing else', () => {
  expect(GpioMountText.parse('sysfs')).toEqual({ kind: 'sysfs' })
  expect(GpioMountText.parse('unix:/run/gpio.sock')).toEqual({
    kind: 'socket',
    address: { path: '/run/gpio.sock' },
  })
  expect(GpioMountText.safeParse('/run/gpio.sock').error?.issues[0]?.message).toContain('unix:PATH')
})
