import type { Location } from '../../protocol/model/location.ts'
import { deviceId, type HardwareDescription } from '../../protocol/model/hardware.ts'

/** The hub's hardware, by number and name. */
export interface Layout {
  bins: readonly { number: number; capacity: number; device: string; controller: string }[]
  cabinets: readonly number[]
  fridges: readonly { number: number; limitCelsius: number }[]
  controllers: readonly string[]
  /** Units that a row holds; 0 if there is no such row. */
  depthOf(location: Location): number
  /** The cabinets behind a fridge's doors. */
  fridgeDoors: HardwareDescription['fridgeDoors']
  controllerOf(device: string): string | undefined
  devicesOf(controller: string): readonly string[]
}

export const binDevice = (number: number): string => deviceId({ kind: 'bin', number })
export const fridgeDevice = (number: number): string => deviceId({ kind: 'fridge', number })
export const cabinetDevice = (number: number): string => deviceId({ kind: 'cabinet', number })

/** The number of a device of this kind; undefined for other devices. */
export function numberOf(kind: 'bin' | 'cabinet' | 'fridge', device: string): number | undefined {
  const [name, number] = device.split('-')
  return name === kind ? Number(number) : undefined
}

export function createLayout(hardware: HardwareDescription): Layout {
  const devices = hardware.controllers.flatMap((controller) =>
    controller.devices.map((device) => ({ controller: controller.id, id: deviceId(device), device })),
  )
  const depths = new Map(
    devices.flatMap(({ device }) =>
      device.kind === 'cabinet'
        ? device.shelves.map(
            ({ shelf, rows, depth }) => [`${device.number}-${shelf}`, { rows, depth }] as const,
          )
        : [],
    ),
  )
  const controllerByDevice = new Map(devices.map(({ id, controller }) => [id, controller]))
  return {
    bins: devices
      .flatMap(({ id, controller, device }) =>
        device.kind === 'bin' ? [{ ...device, device: id, controller }] : [],
      )
      .toSorted((a, b) => a.number - b.number),
    cabinets: devices
      .flatMap(({ device }) => (device.kind === 'cabinet' ? [device.number] : []))
      .toSorted((a, b) => a - b),
    fridges: devices
      .flatMap(({ device }) => (device.kind === 'fridge' ? [device] : []))
      .toSorted((a, b) => a.number - b.number),
    controllers: hardware.controllers.map((controller) => controller.id),
    fridgeDoors: hardware.fridgeDoors,
    depthOf({ cabinet, shelf, row }) {
      const known = depths.get(`${cabinet}-${shelf}`)
      return known && row <= known.rows ? known.depth : 0
    },
    controllerOf: (device) => controllerByDevice.get(device),
    devicesOf: (controller) =>
      devices.filter((entry) => entry.controller === controller).map((entry) => entry.id),
  }
}

/** The dispense location in an operation's row; null for other motions. */
interface DispensePlace {
  device: string
  shelf: number | null
  row: number | null
}

/** The location from which an operation dispensed; undefined for other operations. */
export function placeOf({ device, shelf, row }: DispensePlace): Location | undefined {
  const cabinet = numberOf('cabinet', device)
  return cabinet === undefined || shelf === null || row === null ? undefined : { cabinet, shelf, row }
}

/** Whether the operation dispensed from this location. */
export const isAt = (operation: DispensePlace, place: Location): boolean =>
  operation.device === cabinetDevice(place.cabinet) &&
  operation.shelf === place.shelf &&
  operation.row === place.row
