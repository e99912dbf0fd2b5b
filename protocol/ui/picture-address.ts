/**
 * The address of a picture for this browser. Signed pictures of the service come from the service itself, whatever name of it the
 * browser calls. Other pictures have addresses of the owner's. `base`: address of the service, without a slash at its end.
 */
export function pictureAddress(url: string, base: string): string {
  const { pathname, search, searchParams } = new URL(url, location.href)
  const at = pathname.indexOf('/files/')
  return at < 0 || !searchParams.has('signature') ? url : `${base}${pathname.slice(at)}${search}`
}
