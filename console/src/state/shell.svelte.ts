/** The state of the frame that several views use. */
export const shell = $state({ showsSidebar: false });
