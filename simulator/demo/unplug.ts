import { lstatSync, readFileSync, rmSync } from 'node:fs'
import { HardwareDescription } from '../../protocol/model/hardware.ts'

/**
 * Removes the links to the serial ports of a simulator that has died. The kernel gives its pseudo-terminals to whoever asks
 * next, and that may be another simulator on this machine: by a link that outlives the first, the hub would drive the
 * second one's hardware.
 */
export function unplug(hardwareFile: string): void {
  const { controllers } = HardwareDescription.parse(JSON.parse(readFileSync(hardwareFile, 'utf8')))
  for (const { port } of controllers)
    if (lstatSync(port, { throwIfNoEntry: false })?.isSymbolicLink()) rmSync(port)
}
