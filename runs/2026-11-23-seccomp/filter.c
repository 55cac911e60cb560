#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <stdio.h>
#include <stddef.h>
#include <errno.h>
static const int denied[]={SYS_ptrace,SYS_process_vm_readv,SYS_process_vm_writev,SYS_bpf,SYS_perf_event_open,SYS_userfaultfd,SYS_kexec_load,SYS_kexec_file_load,SYS_init_module,SYS_finit_module,SYS_delete_module,SYS_unshare,SYS_setns,SYS_pivot_root,SYS_mount,SYS_umount2,SYS_move_mount,SYS_open_tree,SYS_fsopen,SYS_fsconfig,SYS_fsmount,SYS_fspick,SYS_mount_setattr,SYS_add_key,SYS_keyctl,SYS_request_key,SYS_acct,SYS_quotactl,SYS_name_to_handle_at,SYS_open_by_handle_at,SYS_personality,SYS_iopl,SYS_ioperm,SYS_modify_ldt,SYS_swapon,SYS_swapoff,SYS_syslog,SYS_settimeofday,SYS_clock_settime,SYS_adjtimex,SYS_clock_adjtime,SYS_chroot,SYS_vhangup,SYS_mknod,SYS_mknodat,SYS_reboot,SYS_sethostname,SYS_setdomainname,SYS_kcmp,SYS_migrate_pages,SYS_move_pages,SYS_pidfd_getfd,SYS_fanotify_init,SYS_lookup_dcookie,SYS_nfsservctl,SYS_uselib,SYS_ustat,SYS_sysfs,SYS__sysctl,SYS_vmsplice};
int main(int c,char**v){int n=sizeof denied/sizeof*denied;struct sock_filter f[600];int k=0;
f[k++]=(struct sock_filter)BPF_STMT(BPF_LD|BPF_W|BPF_ABS,offsetof(struct seccomp_data,arch));
f[k++]=(struct sock_filter)BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K,0xC000003E,1,0);
f[k++]=(struct sock_filter)BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_KILL_PROCESS);
f[k++]=(struct sock_filter)BPF_STMT(BPF_LD|BPF_W|BPF_ABS,offsetof(struct seccomp_data,nr));
for(int x=0;x<2;x++)for(int i=0;i<n;i++){f[k++]=(struct sock_filter)BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K,denied[i]|(x?0x40000000:0),0,1);f[k++]=(struct sock_filter)BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_ERRNO|EPERM);}
f[k++]=(struct sock_filter)BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_ALLOW);
struct sock_fprog p={k,f};prctl(PR_SET_NO_NEW_PRIVS,1,0,0,0);if(prctl(PR_SET_SECCOMP,SECCOMP_MODE_FILTER,&p)){perror("seccomp");return 1;}
execvp(v[1],v+1);return 1;}
